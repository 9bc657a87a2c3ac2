// SPDX-License-Identifier: Apache-2.0
// How kernels that work channel by channel see every layout: as strips of neighbouring channels, at
// most a vector register wide, whose pixels lie at a constant distance. Strips share nothing, so
// each is one thread's work and results do not depend on the number of threads.
//   blocked8, blocked16   a strip is a block, or half of one where registers are narrower
//   channels_last, [N, C] strips of 16, then 8, then single channels
//   plain                 a strip is one channel; its pixels are neighbours, and kernels vectorise
//   over them
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/layout.hpp"
#include "kernels/core/shape.hpp"

namespace collar::kernels {

struct Strip {
  std::int64_t channel;  ///< the first one
  int lanes;             ///< how many: 16, 8 or 1
  std::int64_t offset;   ///< of its first element in the first image
};

class ChannelStrips {
 public:
  /// For [N, C, H, W] in any layout or [N, C]; `widest` is the number of lanes of a vector
  /// register, 8 or 16.
  ChannelStrips(const Shape& shape, Layout layout, int widest) : channels_(shape[1]) {
    const bool image = shape.rank() == 4;
    if (image && layout == Layout::plain) {
      widest_ = 1;
    } else {
      block_ = block_of(layout) > 1 ? block_of(layout) : channels_;
      widest_ = block_ == 8 ? 8 : widest;
      pixel_stride_ = block_;
    }
    images_ = image ? shape[0] : 1;
    pixels_ = image ? shape[2] * shape[3] : shape[0];
  }

  std::int64_t count() const {
    const std::int64_t rest = channels_ % widest_;
    return channels_ / widest_ + (rest >= 8 ? rest - 7 : rest);
  }
  Strip operator[](std::int64_t i) const {
    const std::int64_t whole = channels_ / widest_;
    if (i < whole) return at(i * widest_, widest_);
    const std::int64_t rest = channels_ - whole * widest_;
    if (rest >= 8 && i == whole) return at(whole * widest_, 8);
    return at(whole * widest_ + (i - whole) + (rest >= 8 ? 7 : 0), 1);
  }

  std::int64_t images() const { return images_; }
  /// Pixels of an image (rows of a matrix).
  std::int64_t pixels() const { return pixels_; }
  /// Elements from a pixel to the next.
  std::int64_t pixel_stride() const { return pixel_stride_; }
  /// Elements from an image to the next.
  std::int64_t image_stride() const { return channels_ * pixels_; }
  /// Whether each pixel of each strip has whole bytes of a bit mask to itself.
  bool byte_aligned() const { return pixel_stride_ % 8 == 0; }

 private:
  Strip at(std::int64_t channel, int lanes) const {
    return {channel, lanes, channel / block_ * block_ * pixels_ + channel % block_};
  }

  std::int64_t channels_;
  std::int64_t block_ = 1;
  int widest_;
  std::int64_t images_;
  std::int64_t pixels_;
  std::int64_t pixel_stride_ = 1;
};

}  // namespace collar::kernels
