// SPDX-License-Identifier: Apache-2.0
#include "nn/model_config.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/random.hpp"
#include "kernels/core/error.hpp"
#include "nn/model_zoo.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/mutation.hpp"

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

TEST_CASE("Numbers of a config.json that no model can have are refused by name") {
  const auto refusal = [](const std::string& members) {
    const std::string top = R"({"architecture": "resnet18", )" + members + "}";
    const std::string inner =
        R"({"architecture": "resnet18", "pretrained_cfg": {)" + members + "}}";
    std::string messages;
    for (const std::string& text : {top, inner}) {
      try {
        model_config_from_json(text);
      } catch (const FileError& error) {
        messages += error.what();
      }
    }
    return messages;
  };
  using Catch::Contains;
  CHECK_THAT(refusal(R"("num_classes": 0)"),
             Contains(R"(num_classes is 0, expected a whole number from 1 to 1000000)"));
  CHECK_THAT(refusal(R"("num_classes": -3)"), Contains("num_classes"));
  CHECK_THAT(refusal(R"("num_classes": 18446744073709551615)"), Contains("num_classes"));
  CHECK_THAT(refusal(R"("num_classes": 1e300)"), Contains("num_classes"));
  CHECK_THAT(refusal(R"("num_classes": true)"), Contains("num_classes"));
  CHECK_THAT(refusal(R"("num_features": 3.5)"), Contains("num_features"));
  CHECK_THAT(refusal(R"("crop_pct": 0)"), Contains("crop_pct"));
  CHECK_THAT(refusal(R"("test_crop_pct": "wide")"), Contains("test_crop_pct"));
  CHECK_THAT(refusal(R"("input_size": [3, 224])"), Contains("input_size is not a list of 3"));
  CHECK_THAT(refusal(R"("input_size": [3, 224, 1e9])"), Contains("input_size[2]"));
  CHECK_THAT(refusal(R"("mean": [0, 0, null])"), Contains("mean[2]"));
  CHECK_THAT(refusal(R"("std": [1, 0, 1])"), Contains("std[1]"));
  CHECK_THAT(refusal(R"("interpolation": 3)"), Contains("interpolation"));
  CHECK_THAT(refusal(R"("label_names": [1])"), Contains("label_names"));
}

TEST_CASE("A mutated config.json is read as something that can be, or refused") {
  ModelConfig original = config_of("resnet50d");
  original.num_classes = original.pretrained.num_classes = 3;
  original.label_names = {"cat", "dog", "\u732b"};
  const std::string text = to_json(original);
  RandomStream random({.seed = 1, .purpose = Purpose::test});
  const int rounds = collar::test::rounds(3'000, 200'000);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string mutated =
        collar::test::mutated(text, "0123456789{}[]\",:-.eE \\untrfals", random);
    try {
      const ModelConfig config = model_config_from_json(mutated);
      if (config.num_classes < 1 || config.num_classes > 1'000'000) FAIL(mutated);
      if (config.label_names.size() % static_cast<std::size_t>(config.num_classes) != 0) {
        FAIL(mutated);
      }
      if (model_config_from_json(to_json(config)) != config) FAIL(mutated);
    } catch (const FileError&) {
      ++refused;
    } catch (const UsageError& error) {
      if (!std::string(error.what()).starts_with("unknown model")) throw;
      ++refused;
    }
  }
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
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
