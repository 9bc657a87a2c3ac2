// SPDX-License-Identifier: Apache-2.0
#include "data/transform/flip.hpp"

#include <catch2/catch.hpp>

#include "tests/data/support/images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using nlohmann::json;

TEST_CASE("Flips are drawn from a torch generator as torchvision draws them") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  const json rows = test::read_json(path).at("random_horizontal_flip_draws");
  REQUIRE(rows.size() == 2);
  for (const json& row : rows) {
    TorchGenerator generator(row.at("seed").get<std::uint64_t>());
    data::TorchRandom random(generator);
    REQUIRE(row.at("flipped").size() == 32);
    for (const json& wanted : row.at("flipped")) CHECK(random.chance(0.5) == (wanted == 1));
  }
}

TEST_CASE("A flip exchanges left and right") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  REQUIRE_SHARED(photos, "data");
  const json rows = test::read_json(path).at("pixel_kernels");
  int compared = 0;
  for (const json& row : rows) {
    if (row.at("op") != "hflip") continue;
    data::Image image = test::source_image(row.at("source"), photos);
    data::flip_horizontally(image);
    CHECK(test::sha256_of(image.bytes()) == row.at("sha256"));
    ++compared;
  }
  CHECK(compared == 6);
}
