// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/canvas.hpp"

#include <fmt/format.h>

#include "kernels/core/error.hpp"

namespace collar::apps::synth {

Canvas::Canvas(int width, int height) : width_(width), height_(height) {
  if (width < 1 || height < 1 || width > 4096 || height > 4096) {
    throw UsageError(
        fmt::format("canvas: expected sides of 1 to 4096 pixels, got {} x {}", width, height));
  }
  pixels_.resize(stride() * static_cast<std::size_t>(height));
}

Picture Canvas::develop(double grain, std::uint64_t seed) const {
  Picture picture{width_, height_, {}};
  picture.rgb.reserve(pixels_.size() * 3);
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) {
      const double noise = (2 * lattice_noise(x, y, seed) - 1) * grain;
      const Color& color = at(x, y);
      for (const double level : {color.red, color.green, color.blue}) {
        picture.rgb.push_back(
            static_cast<std::uint8_t>(std::clamp(std::floor(level + noise + 0.5), 0.0, 255.0)));
      }
    }
  }
  return picture;
}

}  // namespace collar::apps::synth
