// SPDX-License-Identifier: Apache-2.0
// Bytes of an image to planes of floats, with torchvision's bits.
#include "kernels/image.hpp"

#include <catch2/catch.hpp>

#include <vector>

using collar::kernels::ByteScaling;
using collar::kernels::image_to_planes;
using collar::kernels::PixelTable;

TEST_CASE("the two ways of scaling differ in 126 of 256 bytes") {
  const PixelTable multiplied(ByteScaling::multiply);
  const PixelTable divided(ByteScaling::divide);
  int different = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    different += multiplied.channel(0)[byte] != divided.channel(0)[byte] ? 1 : 0;
  }
  CHECK(different == 126);
  CHECK(divided.channel(1)[255] == 1.0f);
  CHECK(divided.channel(2)[51] == 0.2f);
}

TEST_CASE("byte 128 normalised by ImageNet's mean and deviation has torchvision's bits") {
  const PixelTable table(ByteScaling::divide, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
  CHECK(table.channel(0)[128] == 0x1.2f5e64p-4f);
  CHECK(table.channel(1)[128] == 0x1.a43690p-3f);
  CHECK(table.channel(2)[128] == 0x1.b4ba78p-2f);
}

TEST_CASE("interleaved pixels become planes, flipped or not") {
  const std::int64_t height = 3;
  const std::int64_t width = 5;
  std::vector<std::uint8_t> pixels(3 * 15);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 5);
  const PixelTable table(ByteScaling::multiply, {0.1f, 0.2f, 0.3f}, {0.5f, 0.6f, 0.7f});
  for (const bool flip : {false, true}) {
    std::vector<float> planes(3 * 15);
    image_to_planes(pixels.data(), height, width, flip, table, planes.data());
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t h = 0; h < 3; ++h) {
        for (std::size_t w = 0; w < 5; ++w) {
          const std::size_t from = flip ? 4 - w : w;
          const std::uint8_t byte = pixels[(h * 5 + from) * 3 + c];
          CHECK(planes[(c * 3 + h) * 5 + w] == table.channel(c)[byte]);
        }
      }
    }
  }
}
