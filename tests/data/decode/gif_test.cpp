// SPDX-License-Identifier: Apache-2.0
// A GIF whose frame does not cover its screen, pixel by pixel; whole files are in decode_test.cpp.
#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "data/decode/decode.hpp"
#include "kernels/core/error.hpp"

using namespace collar;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// 4 x 3 pixels; at (1, 1) a frame of 2 x 2 with the colours 0 1 / 2 3, of which 2 is transparent.
Bytes small_gif() {
  using namespace std::string_view_literals;
  constexpr std::string_view kText =
      "GIF89a\4\0\3\0\x81\0\0"
      "\x01\x02\x03\x0a\x14\x1e\x64\x6e\x78\xfa\xfb\xfc"
      "!\xf9\4\1\0\0\2\0"
      ",\1\0\1\0\2\0\2\0\0"
      "\x08\x07\x00\x01\x04\x10\x30\x20\x20\x00;"sv;
  return {kText.begin(), kText.end()};
}

constexpr std::size_t kWidth = 6, kControlFlags = 28, kCodeBits = 43;

/// The indices of the colours, told by their red.
std::vector<int> colours_of(const Bytes& bytes, data::ImageSize size) {
  const data::Image image = data::decode_image(bytes, "small.gif");
  CHECK(image.size() == size);
  std::vector<int> colours;
  for (std::size_t i = 0; i < image.bytes().size(); i += 3) {
    const int red = image.bytes()[i];
    colours.push_back(red == 1 ? 0 : red == 10 ? 1 : red == 100 ? 2 : 3);
  }
  return colours;
}

}  // namespace

TEST_CASE("What the frame of a GIF leaves free has the transparent colour, else the first") {
  Bytes gif = small_gif();
  CHECK(colours_of(gif, {4, 3}) == std::vector{2, 2, 2, 2, 2, 0, 1, 2, 2, 2, 3, 2});
  gif[kControlFlags] = 0;
  CHECK(colours_of(gif, {4, 3}) == std::vector{0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0});
}

TEST_CASE("A frame that is larger than its screen widens the image") {
  Bytes gif = small_gif();
  gif[kWidth] = 1;
  gif[kControlFlags] = 0;
  CHECK(colours_of(gif, {3, 3}) == std::vector{0, 0, 0, 0, 0, 1, 0, 2, 3});
}

TEST_CASE("A GIF that is no whole image is refused") {
  const Bytes whole = small_gif();
  const auto refused = [](const Bytes& gif, const char* reason) {
    CHECK_THROWS_AS(data::decode_image(gif, "small.gif"), DataError);
    CHECK_THROWS_WITH(data::decode_image(gif, "small.gif"), Catch::Contains(reason));
  };
  for (std::size_t length = 6; length + 2 < whole.size(); ++length) {
    refused(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), "small.gif");
  }
  Bytes gif = whole;
  gif[kCodeBits] = 13;
  refused(gif, "codes of 13 bits");
  gif = whole;
  gif[kWidth] = gif[kWidth + 1] = gif[kWidth + 2] = gif[kWidth + 3] = 0xff;
  refused(gif, "65535 x 65535 pixels are too many");
  gif = whole;
  gif[33] = ';';  // no frame
  refused(gif, "no frame");
}
