// SPDX-License-Identifier: Apache-2.0
#include "nn/weights.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "engine/io/safetensors.hpp"
#include "kernels/core/error.hpp"
#include "nn/model_files.hpp"
#include "nn/model_zoo.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

std::unique_ptr<ResNet> small_model(std::size_t classes, std::uint64_t seed) {
  return create_model("resnet10t", {.num_classes = classes, .seed = seed});
}

/// All values of a model's state, whatever their type.
std::vector<std::vector<float>> values_of(const Module& model, const std::string& but = "none") {
  std::vector<std::vector<float>> values;
  for (const Parameter& entry : model.state_dict()) {
    if (entry.tensor.dtype() == DType::f32 && !entry.name.starts_with(but)) {
      values.push_back(entry.tensor.to_vector<float>());
    }
  }
  return values;
}

}  // namespace

TEST_CASE("A model saved as a folder comes back the same") {
  const collar::test::TemporaryDirectory folder;
  const auto model = small_model(3, 1);
  *model->named_buffers()[2].tensor.data<std::int64_t>() = 1234567890123;
  const ModelConfig config{.architecture = "resnet10t",
                           .num_classes = 3,
                           .num_features = 512,
                           .label_names = {"cat", "dog", "hámster"},
                           .pretrained = {.tag = "mine", .crop_mode = "squash"}};
  save_model(folder.path(), *model, config);

  for (const auto& path : {folder.path(), folder.path() / "model.safetensors"}) {
    const LoadedModel loaded = load_model(path);
    CHECK(loaded.config == config);
    CHECK(values_of(*loaded.model) == values_of(*model));
    CHECK(loaded.model->named_buffers()[2].tensor.item() == 1234567890123.0);
    CHECK_FALSE(loaded.model->training());
  }
}

TEST_CASE("Weights for other classes are loaded but for the classifier, which is said") {
  const collar::test::TemporaryDirectory folder;
  const auto file = folder.path() / "weights.safetensors";
  const auto model = small_model(1000, 1);
  save_weights(*model, file);

  auto other = small_model(5, 2);
  const std::vector<float> fresh = other->named_parameters().back().tensor.to_vector<float>();
  const LoadReport report = load_weights(*other, file);
  CHECK(report.dropped == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(report.classes_in_file == 1000);
  CHECK(values_of(*other, "fc.") == values_of(*model, "fc."));
  CHECK(other->named_parameters().back().tensor.to_vector<float>() == fresh);

  const auto created = create_model("resnet10t", {.num_classes = 5, .weights = file, .seed = 2});
  CHECK(values_of(*created) == values_of(*other));
  auto same = small_model(1000, 3);
  CHECK(load_weights(*same, file).dropped.empty());
  CHECK(values_of(*same) == values_of(*model));
}

TEST_CASE("Everything that does not fit is told at once, and nothing is changed") {
  Parameters state = small_model(4, 1)->state_dict();
  std::erase_if(state, [](const Parameter& entry) {
    return entry.name == "bn1.bias" || entry.name == "layer2.0.conv1.weight";
  });
  state.push_back({"head.extra", Tensor::zeros({2})});
  for (Parameter& entry : state) {
    if (entry.name == "fc.weight") entry.tensor = Tensor::zeros({4, 100});
  }
  auto model = small_model(4, 2);
  const auto before = values_of(*model);
  CHECK_THROWS_WITH(load_state(*model, state),
                    Catch::Contains("missing: bn1.bias [64]") &&
                        Catch::Contains("missing: layer2.0.conv1.weight [128, 64, 3, 3]") &&
                        Catch::Contains("unexpected: head.extra [2]") &&
                        Catch::Contains("fc.weight: f32 [4, 100] given, f32 [4, 512] expected"));
  CHECK_THROWS_AS(load_state(*model, state), FileError);
  CHECK(values_of(*model) == before);
}

TEST_CASE("Names of a wrapped model and narrower types are understood") {
  const auto model = small_model(4, 1);
  Parameters state;
  for (const Parameter& entry : model->state_dict()) {
    Tensor value = entry.tensor;
    if (entry.name == "bn1.weight") {
      value = Tensor::from<bfloat16>(std::vector<bfloat16>(64, bfloat16(0.5f)), {64});
    }
    state.push_back({"module." + entry.name, value});
  }
  auto other = small_model(4, 2);
  load_state(*other, state);
  for (const Parameter& entry : other->named_parameters()) {
    if (entry.name == "bn1.weight") CHECK(entry.tensor.to_vector<float>()[63] == 0.5f);
  }
}

TEST_CASE("A folder whose files do not fit each other is refused, with its name") {
  const collar::test::TemporaryDirectory folder;
  CHECK_THROWS_AS(load_model(folder.path()), FileError);
  const auto model = small_model(3, 1);
  save_model(folder.path(), *model,
             {.architecture = "resnet10t", .num_classes = 4, .num_features = 512});
  CHECK_THROWS_WITH(load_model(folder.path()),
                    Catch::Contains("weights are for 3 classes, its config.json for 4"));
  std::ofstream(folder.path() / "config.json") << "{]";
  CHECK_THROWS_WITH(load_model(folder.path()), Catch::Contains(folder.path().string()));
}
