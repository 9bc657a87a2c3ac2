// SPDX-License-Identifier: Apache-2.0
// Sums, norms, and where the largest values are. Sums are formed in a fixed order, so they repeat
// bit for bit whatever the number of threads.
#pragma once

#include <cstdint>

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// y = sum of x over the dimensions in which y's extent is 1 and x's is not. Same rank, both plain,
/// each f32 or bf16; sums are f64, times `factor` (1/n for a mean), rounded once.
void sum_to(CpuContext& context, ConstView x, View y, double factor);

/// Elements in a block of squared_norm: a partial sum a block, whatever the buckets.
inline constexpr std::int64_t kNormBlock = 4096;
/// Sum of squares of plain f32 x in f64: each block of kNormBlock elements is summed in 16
/// interleaved lanes, blocks in block order. NaN and infinity propagate.
double squared_norm(CpuContext& context, ConstView x);

/// index[i, j] (i64 [N, k]) = column of the j-th largest of row i of x [N, C], f32 or bf16; of
/// equal values the first column comes first, NaN counts as largest. k <= C.
void top_k(CpuContext& context, ConstView x, View index);

}  // namespace collar::kernels
