// SPDX-License-Identifier: Apache-2.0
#include "data/decode/decode.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "kernels/core/error.hpp"
#include "tests/data/support/csv.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using Catch::Matchers::Contains;

TEST_CASE("Photos decode to Pillow's bytes") {
  REQUIRE_SHARED(photos, "data");
  REQUIRE_SHARED(golden, "golden/data/decode.csv");
  const auto rows = test::read_csv(golden);
  REQUIRE(rows.size() == 490);
  int wrong = 0;
  for (const auto& row : rows) {
    const data::Image image = data::load_image(photos / row.at("file"));
    const bool same = image.width() == std::stoi(row.at("width")) &&
                      image.height() == std::stoi(row.at("height")) &&
                      test::sha256_of(image.bytes()) == row.at("rgb_sha256");
    if (!same) UNSCOPED_INFO(row.at("file"));
    wrong += !same;
  }
  CHECK(wrong == 0);
}

namespace {

/// What is not read: TIFF and WebP, and bitmaps with run lengths.
bool is_left_out(const std::string& message) {
  return message.find("images cannot be read; convert") != std::string::npos ||
         message.find("BMP: compression") != std::string::npos;
}

}  // namespace

TEST_CASE("Odd images are decoded as Pillow decodes them, or refused") {
  REQUIRE_SHARED(folder, "data/odd-images");
  REQUIRE_SHARED(changed, "golden/data/odd_images_changed.csv");
  std::map<std::string, std::string> newer_hash;
  for (const auto& row : test::read_csv(changed)) newer_hash[row.at("file")] = row.at("rgb_sha256");
  std::map<std::string, int> left_out;
  int decoded = 0, refused = 0;
  for (const auto& row : test::read_csv(folder / "manifest.csv")) {
    const std::string& file = row.at("file");
    if (row.at("kind") == "bomb-edge") continue;  // 268 MB
    INFO(file << " (" << row.at("kind") << ")");
    std::string error, hash;
    try {
      hash = test::sha256_of(data::load_image(folder / file).bytes());
    } catch (const DataError& caught) {
      error = caught.what();
    }
    INFO(error);
    if (row.at("expect") == "ok" && is_left_out(error)) {
      ++left_out[row.at("kind")];
    } else if (row.at("expect") == "ok") {
      const bool same = hash == row.at("pillow_rgb_sha256") ||
                        (newer_hash.contains(file) && hash == newer_hash[file]);
      CHECK(same);
      decoded += same;
    } else {
      CHECK(hash.empty());
      CHECK_THAT(error, Contains(file));
      ++refused;
    }
  }
  CHECK(decoded == 63);
  CHECK(refused == 38);
  using Counts = std::map<std::string, int>;
  CHECK(left_out == Counts{{"bmp-odd", 2}, {"tiff", 5}, {"webp", 1}, {"wrong-extension", 1}});
}
