// SPDX-License-Identifier: Apache-2.0
// `collar predict`: which class photos belong to.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/accelerate/json_text.hpp"
#include "apps/accelerate/printable.hpp"
#include "apps/accelerate/screen.hpp"
#include "apps/saved_model.hpp"
#include "apps/verbs.hpp"
#include "data/data.hpp"
#include "data/transform/random_source.hpp"
#include "engine/ops/loss.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model;
  std::vector<std::string> photos;
  int top_k = 5;
  bool json = false;
};

// The images in a folder and below, in order of their names.
std::vector<fs::path> photos_below(const fs::path& folder) {
  std::vector<fs::path> photos;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    std::error_code ignored;  // of a link that leads nowhere
    if (entry->is_regular_file(ignored) && data::has_image_extension(entry->path()))
      photos.push_back(entry->path());
  }
  if (error)
    throw DataError(fmt::format("{}: cannot read it: {}", folder.native(), error.message()));
  if (photos.empty()) throw DataError(fmt::format("{}: no photos in this folder", folder.native()));
  std::ranges::sort(photos);
  return photos;
}

// The files named, and the photos in the folders named.
std::vector<fs::path> files_of(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const fs::path path : paths) {
    std::error_code ignored;  // whoever opens it will say what is wrong
    if (fs::is_directory(path, ignored)) {
      const std::vector<fs::path> photos = photos_below(path);
      files.insert(files.end(), photos.begin(), photos.end());
    } else {
      files.push_back(path);
    }
  }
  return files;
}

struct Guess {
  std::string name;
  double probability;
};

class Predictor {
 public:
  explicit Predictor(const std::string& model)
      : trained_(load_trained_model(model)),
        names_(class_names(trained_.config)),
        pipeline_(trained_.preprocessing.eval()) {
    trained_.model->to(runtime_.context());
    trained_.model->eval();
  }

  /// The most likely classes of a photo, best first.
  std::vector<Guess> guess(const fs::path& photo, int count) {
    const NoGrad no_grad;
    const data::ImageSize size = pipeline_.output_size().value();
    Tensor image = Tensor::empty({1, 3, size.height, size.width});
    data::SampleRandom unused(0, 0, 0);  // an evaluation pipeline draws nothing
    pipeline_.run(data::load_image(photo), unused, image.data<float>());
    const std::vector<float> probabilities =
        softmax((*trained_.model)(image.to(runtime_.context()))).to_vector<float>();
    std::vector<std::size_t> order(probabilities.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
    std::vector<Guess> guesses;
    for (const std::size_t i : order) guesses.push_back({names_[i], probabilities[i]});
    return guesses;
  }

 private:
  Runtime runtime_;
  TrainedModel trained_;
  std::vector<std::string> names_;
  data::Pipeline pipeline_;
};

void print(const fs::path& photo, const std::vector<Guess>& guesses, bool json) {
  if (json) {
    nlohmann::ordered_json line{{"photo", photo.native()}, {"classes", nlohmann::json::array()}};
    for (const Guess& guess : guesses) {
      line["classes"].push_back({{"class", guess.name}, {"probability", guess.probability}});
    }
    fmt::print("{}\n", json_text(line));
    return;
  }
  fmt::print("{}\n", printable(photo.native()));
  for (const Guess& guess : guesses) {
    fmt::print("  {:6.2f} %  {}\n", 100 * guess.probability, printable(guess.name));
  }
}

ExitCode run(const Options& options) {
  const std::vector<fs::path> files = files_of(options.photos);
  Predictor predictor(options.model);
  std::size_t failed = 0;
  for (const fs::path& file : files) {
    try {
      print(file, predictor.guess(file, options.top_k), options.json);
    } catch (const DataError& error) {
      ++failed;
      say(fmt::format("collar: warning: {}", error.what()));
    }
  }
  if (failed == 0) return ExitCode::done;
  throw DataError(fmt::format("{} of {} photos could not be read", failed, files.size()));
}

}  // namespace

Verb add_predict(CLI::App& program) {
  CLI::App* command = add_command(program, "predict", "Say which class photos belong to");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("MODEL", options->model,
                   "A run's folder, or any with model.safetensors and config.json")
      ->required();
  command->add_option("PHOTO", options->photos, "Photos, or folders of them")->required();
  command->add_option("-k,--top-k,--topk", options->top_k, "Classes to show")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  command->add_flag("--json", options->json, "A line of JSON for each photo");
  return {command, [options] { return run(*options); }};
}

}  // namespace collar::apps
