// SPDX-License-Identifier: Apache-2.0
// The arithmetic of reductions: how two values meet, and in which order n of them do. Everything
// that adds over ranks goes through here, so that "the same order" means the same bits. Sums of
// f32, bf16 and f16 are formed in f32, f64 in f64; integers wrap in their own type. min and max let
// NaN win and hold -0 for less than +0.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "kernels/core/dtype.hpp"

namespace collar::comm {

enum class ReduceOp : std::uint8_t { sum, product, min, max };

std::string_view name_of(ReduceOp op);

/// What is done with the values of all ranks: combined by `op`, the result times `scale` in the
/// last store. A scale other than 1 needs a floating type.
struct Reduction {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  double scale = 1;
};

/// destination = (incoming op destination) * scale: one step of a ring, the travelling partial
/// result on the left.
void combine(const Reduction& reduction, void* destination, const void* incoming,
             std::size_t count);

/// The tree order of DESIGN section 5 over n sources: split at the largest power of two below n,
/// recursively. The scaled result is written to every destination; a destination may be one of the
/// sources, but not overlap one otherwise. Reads and writes in blocks that stay in the first-level
/// cache.
void reduce_tree(const Reduction& reduction, std::span<const void* const> sources,
                 std::span<void* const> destinations, std::size_t count);

/// Where the tree over n values, n > 1, is split: the largest power of two below n.
constexpr std::size_t tree_split(std::size_t n) {
  return std::bit_floor(n - 1);
}

namespace arithmetic {

/// The type values of T are combined in.
template <typename T>
using Accumulator =
    std::conditional_t<std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>, float, T>;

template <typename A>
A add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename A>
A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}

/// Equal floats differ at most in the sign of a zero: `both` is -0 if both are, else +0; `either`
/// if one is.
template <typename A, bool kBoth>
A equal_floats(A a, A b) {
  using Bits = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;
  const auto x = std::bit_cast<Bits>(a);
  const auto y = std::bit_cast<Bits>(b);
  return std::bit_cast<A>(kBoth ? (x & y) : (x | y));
}

template <typename A>
A larger(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return a > b ? a : b;
  } else {
    const A same = equal_floats<A, true>(a, b);
    const A other = a > b || a != a ? a : b;
    return a == b ? same : other;
  }
}

template <typename A>
A smaller(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return a < b ? a : b;
  } else {
    const A same = equal_floats<A, false>(a, b);
    const A other = a < b || a != a ? a : b;
    return a == b ? same : other;
  }
}

template <ReduceOp kOp, typename A>
A apply(A a, A b) {
  if constexpr (kOp == ReduceOp::sum) {
    return add(a, b);
  } else if constexpr (kOp == ReduceOp::product) {
    return multiply(a, b);
  } else if constexpr (kOp == ReduceOp::min) {
    return smaller(a, b);
  } else {
    return larger(a, b);
  }
}

/// Elements handled at a time: partial results of this size stay in the first-level cache.
inline constexpr std::size_t kBlock = 1024;

/// result[i] = the tree over sources[0..n)[offset + i].
template <ReduceOp kOp, typename T, typename A = Accumulator<T>>
void tree_of_block(const T* const* sources, std::size_t n, std::size_t offset, std::size_t count,
                   A* __restrict result) {
  const T* const first = sources[0] + offset;
  if (n == 1) {
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<A>(first[i]);
  } else if (n == 2) {
    const T* const second = sources[1] + offset;
    for (std::size_t i = 0; i < count; ++i)
      result[i] = apply<kOp>(static_cast<A>(first[i]), static_cast<A>(second[i]));
  } else {
    const std::size_t left = tree_split(n);
    A right[kBlock];
    tree_of_block<kOp>(sources, left, offset, count, result);
    tree_of_block<kOp>(sources + left, n - left, offset, count, right);
    for (std::size_t i = 0; i < count; ++i) result[i] = apply<kOp>(result[i], right[i]);
  }
}

/// to[i] = from[i] * scale, rounded once to T.
template <typename T, typename A>
void store(const A* __restrict from, A scale, std::size_t count, T* __restrict to) {
  if (scale == A(1)) {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(multiply(from[i], scale));
  }
}

}  // namespace arithmetic
}  // namespace collar::comm
