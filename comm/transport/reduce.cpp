// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

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
constexpr std::size_t kBlock = 1024;

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

template <ReduceOp kOp, typename T>
void combine_as(double scale, void* destination, const void* incoming, std::size_t count) {
  using A = Accumulator<T>;
  T* const to = static_cast<T*>(destination);
  const T* const from = static_cast<const T*>(incoming);
  A block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* const pair[] = {from + begin, to + begin};
    tree_of_block<kOp>(pair, 2, 0, n, block);
    store(block, static_cast<A>(scale), n, to + begin);
  }
}

template <ReduceOp kOp, typename T>
void reduce_tree_as(double scale, std::span<const void* const> sources,
                    std::span<void* const> destinations, std::size_t count) {
  using A = Accumulator<T>;
  std::vector<const T*> from;
  for (const void* source : sources) from.push_back(static_cast<const T*>(source));
  A block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    tree_of_block<kOp>(from.data(), from.size(), begin, n, block);
    for (void* destination : destinations)
      store(block, static_cast<A>(scale), n, static_cast<T*>(destination) + begin);
  }
}

/// Calls `body` with the element type and the operation as types.
template <typename Body>
void dispatch(DType dtype, ReduceOp op, Body&& body) {
  const auto with_type = [&]<ReduceOp kOp>(std::integral_constant<ReduceOp, kOp> constant) {
    switch (dtype) {
      case DType::f32:
        return body(constant, float());
      case DType::f64:
        return body(constant, double());
      case DType::bf16:
        return body(constant, bfloat16());
      case DType::f16:
        return body(constant, float16());
      case DType::u8:
        return body(constant, std::uint8_t());
      case DType::i8:
        return body(constant, std::int8_t());
      case DType::i32:
        return body(constant, std::int32_t());
      case DType::i64:
        return body(constant, std::int64_t());
      case DType::boolean:
        break;
    }
    throw UsageError(fmt::format("{} of {} is not defined", name_of(op), name_of(dtype)));
  };
  switch (op) {
    case ReduceOp::sum:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::sum>());
    case ReduceOp::product:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::product>());
    case ReduceOp::min:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::min>());
    case ReduceOp::max:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::max>());
  }
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::product:
      return "product";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "unknown";
}

void combine(DType dtype, const Reduction& reduction, void* destination, const void* incoming,
             std::size_t count) {
  dispatch(dtype, reduction.op,
           [&]<ReduceOp kOp, typename T>(std::integral_constant<ReduceOp, kOp>, T) {
             combine_as<kOp, T>(reduction.scale, destination, incoming, count);
           });
}

void reduce_tree(DType dtype, const Reduction& reduction, std::span<const void* const> sources,
                 std::span<void* const> destinations, std::size_t count) {
  const bool nothing_to_do = reduction.scale == 1 && sources.size() == 1 &&
                             destinations.size() == 1 && sources[0] == destinations[0];
  if (nothing_to_do) return;
  dispatch(dtype, reduction.op,
           [&]<ReduceOp kOp, typename T>(std::integral_constant<ReduceOp, kOp>, T) {
             reduce_tree_as<kOp, T>(reduction.scale, sources, destinations, count);
           });
}

}  // namespace collar::comm
