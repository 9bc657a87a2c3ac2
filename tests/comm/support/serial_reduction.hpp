// SPDX-License-Identifier: Apache-2.0
// The obviously right reduction of one element over ranks: what collectives are compared with, bit
// for bit. Written without a look at comm/transport/reduce.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "comm/transport/reduce.hpp"
#include "kernels/core/dtype.hpp"

namespace collar::test {

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

/// a (op) b in the type A.
template <typename A>
A serial_apply(comm::ReduceOp op, A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using Wide = std::uint64_t;  // wraps modulo 2^64, so modulo every smaller power too
    switch (op) {
      case comm::ReduceOp::sum:
        return static_cast<A>(static_cast<Wide>(a) + static_cast<Wide>(b));
      case comm::ReduceOp::product:
        return static_cast<A>(static_cast<Wide>(a) * static_cast<Wide>(b));
      case comm::ReduceOp::min:
        return std::min(a, b);
      case comm::ReduceOp::max:
        return std::max(a, b);
    }
  } else {
    switch (op) {
      case comm::ReduceOp::sum:
        return a + b;
      case comm::ReduceOp::product:
        return a * b;
      case comm::ReduceOp::min:
        if (std::isnan(a) || std::isnan(b)) return std::nan("");
        if (a == 0 && b == 0) return std::signbit(a) ? a : b;
        return std::min(a, b);
      case comm::ReduceOp::max:
        if (std::isnan(a) || std::isnan(b)) return std::nan("");
        if (a == 0 && b == 0) return std::signbit(a) ? b : a;
        return std::max(a, b);
    }
  }
  return a;
}

template <typename T>
using Wider =
    std::conditional_t<std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>, float, T>;

/// DESIGN section 5: "split at the largest power of two below n, recursively".
template <typename T>
Wider<T> serial_tree(comm::ReduceOp op, std::span<const T> values) {
  if (values.size() == 1) return static_cast<Wider<T>>(values[0]);
  std::size_t split = 1;
  while (2 * split < values.size()) split *= 2;
  return serial_apply(op, serial_tree(op, values.first(split)),
                      serial_tree(op, values.subspan(split)));
}

/// The ring's order for an element of part `part`: ranks part + 1, part + 2, …, part; each partial
/// sum travels as T.
template <typename T>
Wider<T> serial_ring(comm::ReduceOp op, std::span<const T> values, std::size_t part) {
  const std::size_t n = values.size();
  T travelling = values[(part + 1) % n];
  if (n == 1) return static_cast<Wider<T>>(travelling);
  for (std::size_t step = 2; step < n; ++step)
    travelling = static_cast<T>(serial_apply(op, static_cast<Wider<T>>(travelling),
                                             static_cast<Wider<T>>(values[(part + step) % n])));
  return serial_apply(op, static_cast<Wider<T>>(travelling), static_cast<Wider<T>>(values[part]));
}

/// Equal bits, or both NaN.
template <typename T>
bool same_value(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (std::isnan(as_double(a)) && std::isnan(as_double(b))) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Element i of rank r's data: reproducible, of mixed magnitude, now and then a special value.
template <typename T>
T sample(int rank, std::size_t index, bool with_specials) {
  std::uint64_t x =
      (index + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if (with_specials) {
      const Real specials[] = {Real(0), -Real(0), std::numeric_limits<Real>::quiet_NaN(),
                               std::numeric_limits<Real>::infinity(),
                               -std::numeric_limits<Real>::infinity()};
      if (x % 3 == 0) return static_cast<T>(specials[(x >> 32) % 5]);
    }
    constexpr Real kPowers[] = {0x1p-26, 0x1p-25, 0x1p-24, 0x1p-23, 0x1p-22, 0x1p-21, 0x1p-20};
    const auto mantissa = static_cast<Real>(static_cast<std::int32_t>(x >> 40) - (1 << 23));
    return static_cast<T>(mantissa * kPowers[(x >> 8) % 7]);
  }
}

}  // namespace collar::test
