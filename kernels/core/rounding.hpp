// SPDX-License-Identifier: Apache-2.0
// Whole numbers divided and rounded up: how many pieces, how much with padding. Neither argument is
// negative.
#pragma once

#include <type_traits>

namespace collar {

template <typename T>
constexpr T ceil_div(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}

/// The next multiple, or the value itself if it is one.
template <typename T>
constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return ceil_div(value, multiple) * multiple;
}

}  // namespace collar
