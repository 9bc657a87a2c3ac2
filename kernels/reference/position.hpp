// SPDX-License-Identifier: Apache-2.0
// Where an element lies: from its logical position (row-major over N, C, H, W) to its place in a
// layout.
#pragma once

#include <cstdint>

#include "kernels/core/layout.hpp"
#include "kernels/core/shape.hpp"

namespace collar::kernels {

/// Storage position of element (n, c, h, w) of a tensor of this shape.
inline std::int64_t storage_position(const Shape& shape, Layout layout, std::int64_t n,
                                     std::int64_t c, std::int64_t h, std::int64_t w) {
  const std::int64_t channels = shape[1];
  const std::int64_t height = shape[2];
  const std::int64_t width = shape[3];
  switch (layout) {
    case Layout::channels_last:
      return ((n * height + h) * width + w) * channels + c;
    case Layout::blocked8:
    case Layout::blocked16: {
      const std::int64_t block = block_of(layout);
      return (((n * (channels / block) + c / block) * height + h) * width + w) * block + c % block;
    }
    case Layout::plain:
      break;
  }
  return ((n * channels + c) * height + h) * width + w;
}

/// The same from the flat logical position.
inline std::int64_t storage_position(const Shape& shape, Layout layout, std::int64_t logical) {
  if (layout == Layout::plain) return logical;
  const std::int64_t plane = shape[2] * shape[3];
  const std::int64_t n = logical / (shape[1] * plane);
  const std::int64_t c = logical / plane % shape[1];
  const std::int64_t h = logical / shape[3] % shape[2];
  return storage_position(shape, layout, n, c, h, logical % shape[3]);
}

}  // namespace collar::kernels
