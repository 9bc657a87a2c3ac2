// SPDX-License-Identifier: Apache-2.0
#include "kernels/image.hpp"

#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {

PixelTable::PixelTable(ByteScaling scaling) : PixelTable(scaling, {0, 0, 0}, {1, 1, 1}) {}

PixelTable::PixelTable(ByteScaling scaling, const std::array<float, 3>& mean,
                       const std::array<float, 3>& deviation) {
  for (std::size_t c = 0; c < values_.size(); ++c) {
    for (std::size_t byte = 0; byte < values_[c].size(); ++byte) {
      const auto x = static_cast<float>(byte);
      const float scaled =
          scaling == ByteScaling::multiply ? x * static_cast<float>(1.0 / 255) : x / 255.0f;
      values_[c][byte] = (scaled - mean[c]) / deviation[c];
    }
  }
}

void image_to_planes(const std::uint8_t* pixels, std::int64_t height, std::int64_t width, bool flip,
                     const PixelTable& table, float* planes) {
  const std::int64_t step = flip ? -1 : 1;
  const float* red = table.channel(0).data();
  const float* green = table.channel(1).data();
  const float* blue = table.channel(2).data();
  const std::int64_t plane = height * width;
  for (std::int64_t h = 0; h < height; ++h) {
    const std::uint8_t* from = pixels + h * width * 3;
    float* to = planes + h * width + (flip ? width - 1 : 0);
    for (std::int64_t w = 0; w < width; ++w, from += 3, to += step) {
      to[0] = red[from[0]];
      to[plane] = green[from[1]];
      to[2 * plane] = blue[from[2]];
    }
  }
}

void weighted_rows(Isa isa, const std::uint8_t* rows, std::int64_t stride,
                   const std::int32_t* weights, int taps, std::int64_t n, std::uint8_t* out) {
  loops_for(isa).image.weighted_rows(rows, stride, weights, taps, n, out);
}

}  // namespace collar::kernels
