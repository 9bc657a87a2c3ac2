// SPDX-License-Identifier: Apache-2.0
// The inner loop of resampling, in the best form for the CPU it runs on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collar::data {

/// out[i] = clamp((sum over t of weights[t] * source[t * stride + i] + 2^21) >> 22) for `count`
/// bytes: a weighted sum of `taps` rows.
using WeightedRows = void (*)(const std::uint8_t* source, std::ptrdiff_t stride,
                              const std::int32_t* weights, int taps, std::uint8_t* out,
                              std::ptrdiff_t count);

/// All forms give the same bytes. Throws UsageError if COLLAR_ISA is wrong.
WeightedRows best_weighted_rows();
/// The form for any CPU of this architecture.
WeightedRows portable_weighted_rows();

}  // namespace collar::data
