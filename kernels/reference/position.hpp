// SPDX-License-Identifier: Apache-2.0
// Where an element lies: from its logical position (row-major over N, C, H, W) to its place in a
// layout.
#pragma once

#include <cstdint>

#include "kernels/reference/layout.hpp"

namespace collar::kernels {

/// Storage position of the element at a flat logical position of a tensor of this shape.
inline std::int64_t storage_position(const Shape& shape, Layout layout, std::int64_t logical) {
  if (layout == Layout::plain) return logical;
  const std::int64_t plane = shape[2] * shape[3];
  const std::int64_t n = logical / (shape[1] * plane);
  const std::int64_t c = logical / plane % shape[1];
  const std::int64_t h = logical / shape[3] % shape[2];
  return reference::ImageIndex(shape, layout)(n, c, h, logical % shape[3]);
}

}  // namespace collar::kernels
