// SPDX-License-Identifier: Apache-2.0
#include "data/transform/crop.hpp"

#include <catch2/catch.hpp>

#include "tests/data/support/images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using nlohmann::json;

TEST_CASE("Crop-then-resize equals torchvision's resized_crop") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const json rows = test::read_json(path).at("resized_crop");
  REQUIRE(rows.size() == 48);
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

TEST_CASE("Crops are drawn from a torch generator as torchvision draws them") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  const json rows = test::read_json(path).at("random_resized_crop_draws");
  REQUIRE(rows.size() == 40);
  for (const json& row : rows) {
    TorchGenerator generator(row.at("seed").get<std::uint64_t>());
    data::TorchRandom random(generator);
    INFO(row.dump());
    for (const json& wanted : row.at("top_left_height_width")) {
      const data::CropBox box = data::draw_crop({row.at("W"), row.at("H")}, {}, random);
      CHECK(json{box.top, box.left, box.size.height, box.size.width} == wanted);
    }
  }
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
