// SPDX-License-Identifier: Apache-2.0
// From bytes to floats, with or without normalisation, exactly as torchvision computes it: each
// channel has a table of what becomes of its 256 byte values.
#pragma once

#include <array>
#include <memory>

#include "data/decode/image.hpp"

namespace collar::data {

/// The two ways of torchvision to map 0 … 255 to 0 … 1. They differ in the last bit of 126 values.
enum class ByteScale : std::uint8_t {
  to_dtype,  ///< v2.ToDtype(float32, scale=True): x * (1 / 255)
  to_tensor  ///< ToTensor: x / 255
};

struct ToFloatOptions {
  ByteScale scale = ByteScale::to_dtype;
  std::array<double, 3> mean{0, 0, 0};  ///< of red, green, blue, in 0 … 1
  std::array<double, 3> std{1, 1, 1};
};

class ToFloat {
 public:
  /// (scaled - mean) / std, in float32 and in this order. Throws UsageError for a std that is not
  /// positive, or values that are not finite.
  explicit ToFloat(const ToFloatOptions& options = {});

  /// What a byte becomes.
  float value(int channel, std::uint8_t byte) const {
    return (*table_)[static_cast<std::size_t>(channel)][byte];
  }
  /// Three planes of height x width floats.
  void apply(const ImageView& image, float* chw) const;

 private:
  using Table = std::array<std::array<float, 256>, 3>;
  std::shared_ptr<const Table> table_;
};

}  // namespace collar::data
