// SPDX-License-Identifier: Apache-2.0
// Pillow's resampling (Resample.c): one axis at a time, weights in fixed point of 22 bits, a
// rounding to 8 bits after each pass. The integers are the definition of the result: every
// implementation of it gives the same bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/decode/image.hpp"

namespace collar::data {

enum class Interpolation : std::uint8_t { nearest, box, bilinear, hamming, bicubic, lanczos };

std::string_view name_of(Interpolation interpolation);
/// Throws UsageError that lists the names.
Interpolation interpolation_from_name(std::string_view name);

/// How the outputs along one axis are made of its inputs: output i is the sum of inputs
/// first[i] … first[i] + count[i] - 1, with weights of row i.
struct AxisWeights {
  int stride = 0;  ///< weights a row has room for
  std::vector<int> first;
  std::vector<int> count;
  std::vector<std::int32_t> weights;

  const std::int32_t* row(int i) const {
    return weights.data() + static_cast<std::ptrdiff_t>(i) * stride;
  }
};

/// Any filter but `nearest`. Both extents are positive.
AxisWeights make_weights(int input, int output, Interpolation filter);

/// One pass each: the height, or the width, changes to the number of outputs of `weights`.
Image resample_rows(const ImageView& source, const AxisWeights& weights);
Image resample_columns(const ImageView& source, const AxisWeights& weights);

}  // namespace collar::data
