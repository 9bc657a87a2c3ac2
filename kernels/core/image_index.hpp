// SPDX-License-Identifier: Apache-2.0
// Where element (n, c, h, w) lies. Every layout is N, C/b, H, W, b for some block b of channels: 1
// is plain, C is channels-last, 8 and 16 are themselves; so one formula serves all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/layout.hpp"
#include "kernels/core/shape.hpp"

namespace collar::kernels {

class ImageIndex {
 public:
  /// `shape` is N, C, H, W.
  ImageIndex(const Shape& shape, Layout layout)
      : channels_(shape[1]), height_(shape[2]), width_(shape[3]), block_(block_of(layout)) {
    if (layout == Layout::channels_last) block_ = std::max<std::int64_t>(channels_, 1);
  }

  std::int64_t operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return channel(n, c) + (h * width_ + w) * pixel_stride();
  }
  /// The place of pixel (0, 0) of a channel; the pixels follow in rows, pixel_stride() apart.
  std::int64_t channel(std::int64_t n, std::int64_t c) const {
    return (n * channels_ + c / block_ * block_) * height_ * width_ + c % block_;
  }
  std::int64_t pixel_stride() const { return block_; }

 private:
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t block_;
};

/// Storage position of the element at a flat logical (row-major) position of a tensor of any shape.
inline std::int64_t storage_position(const Shape& shape, Layout layout, std::int64_t logical) {
  if (layout == Layout::plain) return logical;
  const std::int64_t plane = shape[2] * shape[3];
  const std::int64_t n = logical / (shape[1] * plane);
  const std::int64_t c = logical / plane % shape[1];
  const std::int64_t h = logical / shape[3] % shape[2];
  return ImageIndex(shape, layout)(n, c, h, logical % shape[3]);
}

}  // namespace collar::kernels
