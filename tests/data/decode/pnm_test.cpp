// SPDX-License-Identifier: Apache-2.0
// PGM and PPM against the values that Pillow 13 gives for the same bytes.
#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "data/decode/decode.hpp"
#include "kernels/core/error.hpp"

using namespace collar;
using namespace std::string_view_literals;

namespace {

std::span<const std::uint8_t> bytes_of(std::string_view file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

std::vector<int> rgb(std::string_view file) {
  const data::Image image = data::decode_image(bytes_of(file), "a.ppm");
  return {image.bytes().begin(), image.bytes().end()};
}

/// The values of a gray image.
std::vector<int> gray(std::string_view file) {
  std::vector<int> values;
  const std::vector<int> all = rgb(file);
  for (std::size_t i = 0; i < all.size(); i += 3) {
    CHECK((all[i] == all[i + 1] && all[i] == all[i + 2]));
    values.push_back(all[i]);
  }
  return values;
}

}  // namespace

TEST_CASE("Binary PGM and PPM are scaled from any largest value, and clipped from 16-bit gray") {
  CHECK(gray("P5 3 1 255\n\x00\x80\xff"sv) == std::vector{0, 128, 255});
  CHECK(gray("P5\n# made by hand\n3 1\n100\n\x00\x32\xc8"sv) == std::vector{0, 128, 255});
  CHECK(gray("P5 2 1 1000\n\x00\x01\x03\xe8"sv) == std::vector{66, 255});
  CHECK(gray("P5 3 1 65535\n\x00\x01\x00\xff\x12\x34"sv) == std::vector{1, 255, 255});
  CHECK(rgb("P6 2 1 255\n\x01\x02\x03\xff\x00\x80"sv) == std::vector{1, 2, 3, 255, 0, 128});
  CHECK(rgb("P6 1 1 1000\n\x01\xf4\x03\xe8\x00\x07"sv) == std::vector{128, 255, 2});
  CHECK(rgb("P6 1 1 7\n\x01\x02\x03 and more"sv) == std::vector{36, 73, 109});
}

TEST_CASE("PGM and PPM as text, with comments anywhere") {
  CHECK(gray("P2 3 1 15 0 7 15"sv) == std::vector{0, 119, 255});
  CHECK(gray("P2 3 1 1000 0 1 4"sv) == std::vector{0, 66, 255});
  CHECK(gray("P2 1 1 255 1# inside\n2"sv) == std::vector{12});
  CHECK(rgb("P3 1 2 255 1 2 3\n4 # four\n5 6"sv) == std::vector{1, 2, 3, 4, 5, 6});
}

TEST_CASE("PGM and PPM that say too much or hold too little are refused") {
  const auto refused = [](std::string_view file, const char* reason) {
    CHECK_THROWS_AS(rgb(file), DataError);
    CHECK_THROWS_WITH(rgb(file), Catch::Contains(reason));
  };
  refused("P5 3 1 255\n\x00\x80"sv, "truncated");
  refused("P6 1 1 1000\n\x01\xf4\x03\xe8\x00"sv, "truncated");
  refused("P2 2 1 255 1"sv, "truncated");
  refused("P5 3"sv, "truncated");
  refused("P2 2 1 255 1 300"sv, "300 is above the largest, 255");
  refused("P5 3 1 0\n\x00\x80\x00"sv, "1 to 65535");
  refused("P5 3 1 65536\n\x00\x80\x00"sv, "1 to 65535");
  refused("P5 -3 1 255\n\x00"sv, "not a digit");
  refused("P5 99999999999 1 255\n\x00"sv, "too large");
  refused("P5 50000 50000 255\n\x00"sv, "too many");
  refused("P5 0 1 255\n\x00"sv, "0 x 1 pixels");
  refused("P5x3 1 255\n\x00\x80\x00"sv, "first word");
  refused("P5"sv, "first word");
  refused("P4 8 1\n\x00"sv, "PBM images cannot be read; convert it to PNG");
}
