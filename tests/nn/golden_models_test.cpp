// SPDX-License-Identifier: Apache-2.0
// Whole models against timm's: logits, loss, intermediate results, running statistics and the
// gradient of every parameter (golden/models, whose tolerance rule is that of
// golden/README-models.md, section 2).
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "engine/ops/ops.hpp"
#include "nn/optim/adam.hpp"
#include "tests/nn/formula_model.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/golden_models.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

using Json = nlohmann::json;

double largest_of(const Json& values) {
  double largest = 0;
  for (const Json& value : values) largest = std::max(largest, value.get<double>());
  return largest;
}

Tensor labels_of(const Json& golden, collar::test::OnCpu& on) {
  const auto labels = golden.get<std::vector<std::int64_t>>();
  return Tensor::from<std::int64_t>(labels, {static_cast<std::int64_t>(labels.size())})
      .to(on.context());
}

Tensor input_of(const Json& golden, collar::test::OnCpu& on) {
  return collar::test::formula::input(golden["name"],
                                      Shape(golden["shape"].get<std::vector<std::int64_t>>()))
      .to(on.context());
}

/// Logits [N, C] and their loss, each within 8 times the error of PyTorch's logits.
void check_logits(const Tensor& logits, const Tensor& loss, const Json& golden) {
  const double tolerance = 8 * largest_of(golden["logits_err_max"]);
  const std::vector<double> values = collar::test::values_of(logits);
  double off = 0;
  std::size_t i = 0;
  for (const Json& row : golden["logits"]) {
    for (const Json& value : row)
      off = std::max(off, std::abs(values.at(i++) - value.get<double>()));
  }
  INFO("largest difference of logits and loss, tolerance");
  CAPTURE(off, loss.item() - golden["loss"].get<double>(), tolerance);
  CHECK(off <= tolerance);
  CHECK(std::abs(loss.item() - golden["loss"].get<double>()) <= tolerance);
}

/// One forward and backward pass; compares everything the file records for the mode.
void check_mode(ResNet& model, const Json& file, const std::string& mode, collar::test::OnCpu& on) {
  INFO(mode);
  const Json& golden = file[mode];
  model.train(mode == "train");
  Tensor x = model.forward_stem(input_of(file["input"], on));
  CHECK(collar::test::mismatch(x, "maxpool", golden["features"]["maxpool"]) == "");
  for (std::size_t stage = 0; stage < 4; ++stage) {
    x = model.stage(stage)(x);
    const std::string name = "layer" + std::to_string(stage + 1);
    CHECK(collar::test::mismatch(x, name, golden["features"][name]) == "");
  }
  CHECK(collar::test::mismatch(global_avg_pool(x), "global_pool",
                               golden["features"]["global_pool"]) == "");
  const Tensor logits = model.forward_head(x);
  const Tensor loss = cross_entropy(logits, labels_of(file["labels"], on));
  check_logits(logits, loss, golden);

  if (mode == "train") {
    for (const Parameter& buffer : model.named_buffers()) {
      if (buffer.name.ends_with("num_batches_tracked")) {
        CHECK(buffer.tensor.item() == golden["num_batches_tracked"].get<double>());
      } else {
        CHECK(collar::test::mismatch(buffer.tensor, buffer.name, golden["buffers"][buffer.name]) ==
              "");
      }
    }
  }

  loss.backward();
  const double kinks = golden["kink_allowance"];
  for (Parameter parameter : model.named_parameters()) {
    CHECK(collar::test::mismatch(parameter.tensor.grad(), parameter.name,
                                 golden["grads"][parameter.name], kinks) == "");
    parameter.tensor.zero_grad();
  }
}

void check_case(const std::filesystem::path& path) {
  INFO(path.filename());
  const Json file = collar::test::read_json(path);
  collar::test::OnCpu on;
  const auto model =
      nn::test::formula_model(file["model"], file["num_classes"], file["damped"], on.context());
  check_mode(*model, file, "eval", on);
  check_mode(*model, file, "train", on);
}

}  // namespace

TEST_CASE("resnet18d where no unit is near its kink: every gradient is timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet18d_b2_64x64_guarded.json");
}

TEST_CASE("resnet26d where no unit is near its kink: every gradient is timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet26d_b2_33x33_guarded.json");
}

TEST_CASE("resnet50d where no unit is near its kink: every gradient is timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet50d_b2_33x33_guarded.json");
}

TEST_CASE("resnet18 is timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet18_b4_64x64.json");
}

TEST_CASE("resnet18d is timm's at an odd size") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet18d_b2_97x131.json");
}

TEST_CASE("resnet50 is timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet50_b4_64x64.json");
}

TEST_CASE("resnet50d is timm's where its last normalisations are damped") {
  REQUIRE_SHARED(folder, "golden/models");
  check_case(folder / "resnet50d_b4_64x64_damped.json");
}

TEST_CASE("All recorded models are timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  REQUIRE_FULL_TESTS();
  int compared = 0;
  for (const std::string model : {"resnet18", "resnet18d", "resnet50", "resnet50d"}) {
    for (const std::string size : {"_b4_64x64", "_b2_97x131", "_b2_224x224"}) {
      for (const std::string damped : {"", "_damped"}) {
        const auto file = folder / (model + size + damped + ".json");
        if (!std::filesystem::exists(file)) continue;
        check_case(file);
        ++compared;
      }
    }
  }
  CHECK(compared == 18);
}

TEST_CASE("A frozen model in training mode: two steps of AdamW on its classifier are timm's") {
  REQUIRE_SHARED(folder, "golden/models");
  for (const std::string name : {"resnet18d_b4_64x64_frozen", "resnet18d_b4_64x64_damped_frozen",
                                 "resnet50d_b4_64x64_damped_frozen"}) {
    INFO(name);
    const Json file = collar::test::read_json(folder / (name + ".json"));
    collar::test::OnCpu on;
    const auto model =
        nn::test::formula_model(file["model"], file["num_classes"], file["damped"], on.context());
    model->freeze_all_but(model->classifier());
    AdamW optimizer(model->trainable_parameters(), {.lr = 3e-2, .weight_decay = 1e-3});
    for (std::size_t step = 0; step < 2; ++step) {
      const Json& golden = file["step" + std::to_string(step)];
      const Tensor logits = (*model)(input_of(file["inputs"][step], on));
      const Tensor loss = cross_entropy(logits, labels_of(file["labels"][step], on));
      check_logits(logits, loss, golden);
      optimizer.zero_grad();
      loss.backward();
      for (const Parameter& parameter : model->named_parameters()) {
        const bool trained = parameter.name.starts_with("fc.");
        CHECK(parameter.tensor.grad().defined() == trained);
        if (!trained) continue;
        CHECK(collar::test::mismatch(parameter.tensor.grad(), parameter.name,
                                     golden["grads"][parameter.name]) == "");
      }
      optimizer.step();
      for (const Parameter& parameter : model->trainable_parameters()) {
        CHECK(collar::test::mismatch(parameter.tensor, parameter.name,
                                     golden["params_after"][parameter.name]) == "");
      }
    }
    for (const Parameter& buffer : model->named_buffers()) {
      if (buffer.name.ends_with("num_batches_tracked")) {
        CHECK(buffer.tensor.item() == 2);
      } else {
        CHECK(collar::test::mismatch(buffer.tensor, buffer.name,
                                     file["buffers_after"][buffer.name]) == "");
      }
    }
  }
}

namespace {

/// |a - b| / |b|
double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

/// Forward and backward in f32 and in bf16. Our f32 is the truth here: it is a thousand times
/// closer.
void check_bf16_case(const std::filesystem::path& path) {
  INFO(path.filename());
  const Json file = collar::test::read_json(path);
  collar::test::OnCpu on;
  const auto model =
      nn::test::formula_model(file["model"], file["num_classes"], file["damped"], on.context());
  const Parameters parameters = model->named_parameters();
  const auto logits_in = [&](DType type, bool training) {
    model->set_compute_type(type);
    model->train(training);
    for (Parameter parameter : parameters) parameter.tensor.zero_grad();
    const Tensor logits = (*model)(input_of(file["input"], on));
    cross_entropy(logits, labels_of(file["labels"], on)).backward();
    CHECK(logits.dtype() == DType::f32);
    return collar::test::values_of(logits);
  };

  const auto logits = logits_in(DType::f32, false);
  std::vector<std::vector<double>> gradients;
  for (const Parameter& parameter : parameters) {
    gradients.push_back(collar::test::values_of(parameter.tensor.grad()));
  }
  const Json& golden = file["eval"];
  CHECK(relative_difference(logits_in(DType::bf16, false), logits) <=
        2 * golden["logits_relative_err_l2"].get<double>());
  const double median = golden["grad_relative_err_l2"]["median"];
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    INFO(parameters[i].name);
    const double theirs = golden["grads"][parameters[i].name]["relative_err_l2"];
    CHECK(relative_difference(collar::test::values_of(parameters[i].tensor.grad()), gradients[i]) <=
          2 * std::max(theirs, median));
  }

  if (!file["damped"].get<bool>()) return;  // noise, in PyTorch too
  nn::test::load_formula(*model, true);
  const auto training = logits_in(DType::f32, true);
  CHECK(relative_difference(logits_in(DType::bf16, true), training) <=
        2 * file["train"]["logits_relative_err_l2"].get<double>());
}

}  // namespace

TEST_CASE("A bf16 model is as close to the truth as PyTorch's") {
  REQUIRE_SHARED(folder, "golden/models");
  check_bf16_case(folder / "resnet18d_b4_64x64_bf16.json");
  check_bf16_case(folder / "resnet18d_b4_64x64_damped_bf16.json");
  if (collar::test::full_tests()) {
    check_bf16_case(folder / "resnet50d_b4_64x64_bf16.json");
    check_bf16_case(folder / "resnet50d_b4_64x64_damped_bf16.json");
  }
}
