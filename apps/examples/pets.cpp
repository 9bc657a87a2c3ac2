// SPDX-License-Identifier: Apache-2.0
// Fine-tuning a pet-breed classifier, as the article on Hugging Face accelerate does it:
// ResNet-50d, all but the classifier frozen, AdamW, cosine with warm-up, accuracy on the validation
// photos. A program against the library, as you would write it; the same lines run on one process
// or, started by `collar launch -n 4 ./pets PHOTOS`, on four.
//
//   pets PHOTOS [--weights resnet50d.safetensors] [--model NAME] [--size PIXELS] [--epochs N]
//   [--batch-size N]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "apps/accelerate/accelerator.hpp"
#include "apps/accelerate/evaluation.hpp"
#include "data/data.hpp"
#include "engine/ops/ops.hpp"
#include "nn/nn.hpp"

using namespace collar;

namespace {

struct Arguments {
  std::filesystem::path photos;
  std::filesystem::path weights;
  std::string model = "resnet50d";
  int size = 224;
  int epochs = 3;
  int batch_size = 64;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw std::invalid_argument(word + " needs a value");
      return argv[++i];
    };
    if (word == "--weights") {
      arguments.weights = value();
    } else if (word == "--model") {
      arguments.model = value();
    } else if (word == "--size") {
      arguments.size = std::stoi(value());
    } else if (word == "--epochs") {
      arguments.epochs = std::stoi(value());
    } else if (word == "--batch-size") {
      arguments.batch_size = std::stoi(value());
    } else {
      arguments.photos = word;
    }
  }
  if (arguments.photos.empty())
    throw std::invalid_argument("usage: pets PHOTOS [--weights FILE] …");
  return arguments;
}

void train(const Arguments& arguments) {
  Accelerator accelerator;

  const data::Pipeline pipeline{data::Resize(arguments.size, arguments.size), data::ToFloat()};
  const data::ImageFolder train_set(arguments.photos / "train", pipeline);
  const data::ImageFolder valid_set(arguments.photos / "valid", pipeline);
  data::DataLoader train_loader(train_set,
                                {.batch_size = arguments.batch_size, .shuffle = true, .seed = 42});
  data::DataLoader valid_loader(valid_set, {.batch_size = arguments.batch_size});

  const auto model = nn::create_model(
      arguments.model,
      {.num_classes = train_set.classes().size(), .weights = arguments.weights, .seed = 42});
  model->freeze_all_but(model->classifier());
  nn::AdamW optimizer(model->trainable_parameters(), {.lr = 3e-2, .weight_decay = 1e-3});
  nn::CosineWithWarmup schedule(
      optimizer, {.warmup_steps = 5, .total_steps = arguments.epochs * train_loader.size()});
  accelerator.prepare(*model, optimizer, train_loader, valid_loader, schedule);

  for (int epoch = 0; epoch < arguments.epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    model->train();
    std::int64_t step = 0;
    for (const data::Batch& batch : train_loader) {
      const Tensor loss = cross_entropy((*model)(batch.images), batch.labels);
      accelerator.backward(loss);  // gradients are all-reduced bucket by bucket while backward runs
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      if (++step % 10 == 0) {
        accelerator.print("Epoch [{}/{}], Step [{}/{}], Loss: {:.4f}", epoch + 1, arguments.epochs,
                          step, train_loader.size(), loss.item());
      }
    }
    const Evaluation valid = evaluate(accelerator, *model, valid_loader);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    accelerator.print("Epoch [{}/{}], Validation Accuracy: {:.4f}, Elapsed Time: {:.2f}", epoch + 1,
                      arguments.epochs, valid.accuracy.top1() / 100, elapsed.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pets: {}\n", error.what());
    return 1;
  }
}
