// SPDX-License-Identifier: Apache-2.0
#include "nn/model_config.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/core/error.hpp"
#include "nn/model_zoo.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

ModelConfig config_of(const char* architecture) {
  const ModelInfo& info = model_info(architecture);
  ModelConfig config{.architecture = architecture,
                     .num_classes = 37,
                     .num_features = info.num_features(),
                     .pretrained = info.pretrained};
  config.pretrained.num_classes = 37;
  return config;
}

}  // namespace

TEST_CASE("config.json is written byte for byte as timm writes it") {
  REQUIRE_SHARED(folder, "golden/formats/hf");
  CHECK(to_json(config_of("resnet18")) == text_of(folder / "resnet18_37.config.json"));
  CHECK(to_json(config_of("resnet50d")) == text_of(folder / "resnet50d_37.config.json"));
}

TEST_CASE("config.json with class names and preprocessing of our own comes back as it was") {
  REQUIRE_SHARED(folder, "golden/formats/hf");
  const std::string text = text_of(folder / "resnet18_37_labels.config.json");
  const ModelConfig config = model_config_from_json(text);
  CHECK(config.label_names.size() == 37);
  CHECK(config.label_names[36] == "breed_36");
  CHECK(config.pretrained.interpolation == "bilinear");
  CHECK(config.pretrained.std == std::array<double, 3>{1, 1, 1});
  CHECK(to_json(config) == text);
}

TEST_CASE("What a config.json leaves out is the model's default") {
  const ModelConfig config = model_config_from_json(
      R"({"architecture": "resnet50d", "pretrained_cfg": {"num_classes": 5, "url": "x"}})");
  CHECK(config.num_classes == 5);
  CHECK(config.num_features == 2048);
  CHECK(config.pretrained.tag == "ra2_in1k");
  CHECK(model_config_from_json(R"({"architecture": "resnet18", "pretrained_cfg": null})")
            .num_classes == 1000);
}

TEST_CASE("A config.json that cannot be is refused") {
  CHECK_THROWS_AS(model_config_from_json("{"), FileError);
  CHECK_THROWS_AS(model_config_from_json("[]"), FileError);
  CHECK_THROWS_AS(model_config_from_json("{}"), FileError);
  CHECK_THROWS_AS(model_config_from_json(R"({"architecture": 3})"), FileError);
  CHECK_THROWS_AS(model_config_from_json(R"({"architecture": "resnet18", "num_classes": "many"})"),
                  FileError);
  CHECK_THROWS_AS(model_config_from_json(R"({"architecture": "resnet18", "pretrained_cfg": 4})"),
                  FileError);
  CHECK_THROWS_AS(model_config_from_json(R"({"architecture": "vgg16"})"), UsageError);
  CHECK_THROWS_AS(
      model_config_from_json(
          R"({"architecture": "resnet18", "num_classes": 3, "label_names": ["cat", "dog"]})"),
      FileError);
}
