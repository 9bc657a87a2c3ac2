// SPDX-License-Identifier: Apache-2.0
// The arithmetic of reductions: how two values meet, and in which order n of them do. Everything
// that adds over ranks goes through here, so that "the same order" means the same bits. Sums of
// f32, bf16 and f16 are formed in f32, f64 in f64; integers wrap in their own type. min and max let
// NaN win and hold -0 for less than +0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/core/dtype.hpp"

namespace collar::comm {

enum class ReduceOp : std::uint8_t { sum, product, min, max };

std::string_view name_of(ReduceOp op);

/// What is done with the values of all ranks: combined by `op`, the result times `scale` in the
/// last store. A scale other than 1 needs a floating type.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double scale = 1;
};

/// destination = (incoming op destination) * scale: one step of a ring, the travelling partial
/// result on the left.
void combine(DType dtype, const Reduction& reduction, void* destination, const void* incoming,
             std::size_t count);

/// The tree order of DESIGN section 5 over n sources: split at the largest power of two below n,
/// recursively. The scaled result is written to every destination; a destination may be one of the
/// sources, but not overlap one otherwise. Reads and writes in blocks that stay in the first-level
/// cache.
void reduce_tree(DType dtype, const Reduction& reduction, std::span<const void* const> sources,
                 std::span<void* const> destinations, std::size_t count);

/// Where the tree over n values, n > 1, is split: the largest power of two below n.
constexpr std::size_t tree_split(std::size_t n) {
  return std::bit_floor(n - 1);
}

}  // namespace collar::comm
