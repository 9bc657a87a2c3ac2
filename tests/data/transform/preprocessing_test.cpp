// SPDX-License-Identifier: Apache-2.0
#include "data/transform/preprocessing.hpp"

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"
#include "tests/data/support/images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using nlohmann::json;

namespace {

std::vector<float> floats(const data::Pipeline& pipeline, data::Image image) {
  const data::ImageSize size = pipeline.output_size().value();
  std::vector<float> result(static_cast<std::size_t>(3 * size.pixels()));
  data::SampleRandom unused(0, 0, 0);
  pipeline.run(std::move(image), unused, result.data());
  return result;
}

}  // namespace

TEST_CASE("The timm preset gives timm's evaluation tensors") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const auto pipeline = data::Preprocessing::of(data::TransformPreset::timm).eval();
  const json rows = test::read_json(path).at("timm_eval");
  REQUIRE(rows.size() == 22);
  for (const json& row : rows) {
    data::Image image = test::source_image(row.at("source"), photos);
    const std::vector<float> result = floats(pipeline, std::move(image));
    INFO(row.dump());
    CHECK(test::sha256_of(std::span(result)) == row.at("float_sha256"));
  }
}

TEST_CASE("The article preset gives the article's validation tensors") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const auto preprocessing = data::Preprocessing::of(data::TransformPreset::article);
  const json rows = test::read_json(path).at("article_valid_transform");
  REQUIRE(rows.size() == 9);
  for (const json& row : rows) {
    const data::Image image = test::source_image(row.at("source"), photos);
    INFO(row.dump());
    for (const data::Pipeline& pipeline : {preprocessing.train(), preprocessing.eval()}) {
      const auto result = floats(pipeline, data::resize(image.view(), image.size()));
      CHECK(test::sha256_of(std::span(result)) == row.at("float_sha256"));
    }
  }
}

TEST_CASE("Without a transform, images have the right size or are refused") {
  const auto pipeline = data::Preprocessing::of(data::TransformPreset::none, 8).eval();
  CHECK(floats(pipeline, test::formula_image("flat", {8, 8})).front() == 100 * (1.0f / 255));
  CHECK_THROWS_WITH(floats(pipeline, test::formula_image("flat", {8, 9})),
                    Catch::Contains("8 x 9 pixels") && Catch::Contains("8 x 8 are wanted"));
}

TEST_CASE("A sample's augmentation depends on seed, epoch and sample, and on nothing else") {
  const auto pipeline = data::Preprocessing::of(data::TransformPreset::timm, 32).train();
  const auto augmented = [&](std::uint64_t seed, std::uint32_t epoch, std::int64_t sample) {
    data::SampleRandom random(seed, epoch, sample);
    const data::Image image = pipeline.transform(test::formula_image("syn", {80, 60}), random);
    return test::sha256_of(image.bytes());
  };
  CHECK(augmented(1, 2, 3) == augmented(1, 2, 3));
  CHECK(augmented(1, 2, 3) != augmented(2, 2, 3));
  CHECK(augmented(1, 2, 3) != augmented(1, 3, 3));
  CHECK(augmented(1, 2, 3) != augmented(1, 2, 4));
}

TEST_CASE("Preprocessing travels as JSON and refuses nonsense") {
  auto preprocessing = data::Preprocessing::of(data::TransformPreset::timm, 288);
  preprocessing.pass_order = data::PassOrder::pillow12;
  const json stored = data::to_json(preprocessing);
  CHECK(data::preprocessing_from_json(stored) == preprocessing);
  CHECK(data::preprocessing_from_json(json::parse(stored.dump())) == preprocessing);
  for (const auto& [field, value] :
       std::initializer_list<std::pair<const char*, json>>{{"transform", "timn"},
                                                           {"size", 0},
                                                           {"crop_pct", 1.5},
                                                           {"std", {1, 0, 1}},
                                                           {"hflip", "x"}}) {
    json damaged = stored;
    damaged[field] = value;
    CHECK_THROWS_AS(data::preprocessing_from_json(damaged), FileError);
  }
  json missing = stored;
  missing.erase("mean");
  CHECK_THROWS_AS(data::preprocessing_from_json(missing), FileError);
  auto article = data::Preprocessing::of(data::TransformPreset::article);
  article.crop_pct = 0.875;
  CHECK_THROWS_WITH(article.eval(), Catch::Contains("crop_pct"));
}
