// SPDX-License-Identifier: Apache-2.0
// From bytes to floats, with or without normalisation, exactly as torchvision computes it.
#pragma once

#include <array>
#include <memory>

#include "data/decode/image.hpp"
#include "kernels/image.hpp"

namespace collar::data {

using kernels::ByteScaling;

struct ToFloatOptions {
  ByteScaling scaling = ByteScaling::multiply;  ///< `divide` is what torchvision's ToTensor does
  std::array<double, 3> mean{0, 0, 0};          ///< of red, green, blue, in 0 … 1
  std::array<double, 3> std{1, 1, 1};
};

class ToFloat {
 public:
  /// (scaled - mean) / std, in float32 and in this order. Throws UsageError for a std that is not
  /// positive, or values that are not finite.
  explicit ToFloat(const ToFloatOptions& options = {});

  /// What a byte becomes.
  float value(int channel, std::uint8_t byte) const {
    return table_->channel(static_cast<std::size_t>(channel))[byte];
  }
  /// Three planes of height x width floats.
  void apply(const Image& image, float* chw) const;

 private:
  std::shared_ptr<const kernels::PixelTable> table_;
};

}  // namespace collar::data
