// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>

#include "data/transform/crop.hpp"
#include "data/transform/flip.hpp"
#include "data/transform/pipeline.hpp"
#include "data/transform/preprocessing.hpp"
#include "kernels/core/error.hpp"
#include "tests/data/support/images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using nlohmann::json;

namespace {

float from_hex(const json& text) {
  return std::strtof(text.get<std::string>().c_str(), nullptr);
}

std::vector<float> floats(const data::Pipeline& pipeline, data::Image image) {
  const data::ImageSize size = pipeline.output_size().value();
  std::vector<float> result(static_cast<std::size_t>(3 * size.pixels()));
  data::SampleRandom unused(0, 0, 0);
  pipeline.run(std::move(image), unused, result.data());
  return result;
}

}  // namespace

TEST_CASE("Bytes become the floats of ToDtype, ToTensor and Normalize") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  const json golden = test::read_json(path);
  const data::ToFloat to_dtype;
  const data::ToFloat to_tensor({.scaling = data::ByteScaling::divide});
  const data::ToFloat dtype_normalised(
      {data::ByteScaling::multiply, data::kImageNetMean, data::kImageNetStd});
  const data::ToFloat tensor_normalised(
      {data::ByteScaling::divide, data::kImageNetMean, data::kImageNetStd});
  int wrong = 0;
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    const auto at = static_cast<std::size_t>(i);
    wrong += to_dtype.value(0, byte) != from_hex(golden.at("v2_to_dtype_scale")[at]);
    wrong += to_tensor.value(2, byte) != from_hex(golden.at("v1_to_tensor")[at]);
    for (int c = 0; c < 3; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      wrong += dtype_normalised.value(c, byte) !=
               from_hex(golden.at("normalize_after_v2_to_dtype").at("channels")[channel][at]);
      wrong += tensor_normalised.value(c, byte) !=
               from_hex(golden.at("normalize_after_v1_to_tensor").at("channels")[channel][at]);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Crop-then-resize equals torchvision's resized_crop") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const json rows = test::read_json(path).at("resized_crop");
  for (const json& row : rows) {
    const data::Image image = test::source_image(row.at("source"), photos);
    const data::Image result =
        data::resize(image.view(row.at("j"), row.at("i"), {row.at("w"), row.at("h")}),
                     {row.at("size")[1], row.at("size")[0]},
                     {data::interpolation_from_name(row.at("filter").get<std::string>())});
    INFO(row.dump());
    CHECK(test::sha256_of(result.bytes()) == row.at("sha256"));
  }
}

TEST_CASE("Crops and flips are drawn from a torch generator as torchvision draws them") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  const json golden = test::read_json(path);
  for (const json& row : golden.at("random_resized_crop_draws")) {
    TorchGenerator generator(row.at("seed").get<std::uint64_t>());
    data::TorchRandom random(generator);
    INFO(row.dump());
    for (const json& wanted : row.at("top_left_height_width")) {
      const data::CropBox box = data::draw_crop({row.at("W"), row.at("H")}, {}, random);
      CHECK(json{box.top, box.left, box.size.height, box.size.width} == wanted);
    }
  }
  for (const json& row : golden.at("random_horizontal_flip_draws")) {
    TorchGenerator generator(row.at("seed").get<std::uint64_t>());
    data::TorchRandom random(generator);
    for (const json& wanted : row.at("flipped")) CHECK(random.chance(0.5) == (wanted == 1));
  }
}

TEST_CASE("A flip exchanges left and right") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const json rows = test::read_json(path).at("pixel_kernels");
  for (const json& row : rows) {
    if (row.at("op") != "hflip") continue;
    data::Image image = test::source_image(row.at("source"), photos);
    data::flip_horizontally(image);
    CHECK(test::sha256_of(image.bytes()) == row.at("sha256"));
  }
}

TEST_CASE("The timm preset gives timm's evaluation tensors") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const auto pipeline = data::Preprocessing::of(data::TransformPreset::timm).eval();
  const json rows = test::read_json(path).at("timm_eval");
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

TEST_CASE("Drawn crops lie inside the image and keep to their ranges") {
  for (const data::ImageSize size :
       {data::ImageSize{500, 375}, {1, 1}, {1, 300}, {640, 3}, {2, 2}}) {
    for (int sample = 0; sample < 200; ++sample) {
      data::SampleRandom random(7, 0, sample);
      const data::CropBox box = data::draw_crop(size, {}, random);
      REQUIRE((box.left >= 0 && box.top >= 0 && box.size.width >= 1 && box.size.height >= 1));
      REQUIRE(box.left + box.size.width <= size.width);
      REQUIRE(box.top + box.size.height <= size.height);
    }
  }
}

TEST_CASE("A pipeline knows its output size and its own order") {
  using namespace data;
  CHECK(Pipeline{}.output_size() == std::nullopt);
  CHECK(Pipeline{Resize(20)}.output_size() == std::nullopt);
  CHECK(Pipeline{Resize(20), CenterCrop(16), RandomHorizontalFlip()}.output_size() ==
        ImageSize{16, 16});
  CHECK(Pipeline{RandomResizedCrop(24, 32), ToFloat()}.output_size() == ImageSize{32, 24});
  CHECK_THROWS_AS((Pipeline{ToFloat(), Resize(20, 20)}), UsageError);
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
