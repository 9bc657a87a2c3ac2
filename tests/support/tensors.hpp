// SPDX-License-Identifier: Apache-2.0
// Tensors as plain numbers, for tests that compare them.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::test {

/// The elements in logical (row-major) order, whatever their type and layout. 64-bit integers
/// beyond 2^53 are rounded.
inline std::vector<double> values_of(const Tensor& tensor) {
  const auto convert = [&tensor]<typename T>(T) {
    std::vector<double> values;
    for (const T value : tensor.to_vector<T>()) {
      if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>)
        values.push_back(static_cast<double>(static_cast<float>(value)));
      else
        values.push_back(static_cast<double>(value));
    }
    return values;
  };
  switch (tensor.dtype()) {
    case DType::f32:
      return convert(float{});
    case DType::f64:
      return convert(double{});
    case DType::bf16:
      return convert(bfloat16{});
    case DType::f16:
      return convert(float16{});
    case DType::u8:
      return convert(std::uint8_t{});
    case DType::i8:
      return convert(std::int8_t{});
    case DType::i32:
      return convert(std::int32_t{});
    case DType::i64:
      return convert(std::int64_t{});
    case DType::boolean:
      return convert(bool{});
  }
  return {};
}

/// Whether two numbers are the same: NaN is NaN, and -0 is not +0.
inline bool same_number(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

/// Whether two numbers differ by at most `tolerance`; NaN and infinities only equal themselves. A
/// tolerance of 0 asks for same_number().
inline bool close(double a, double b, double tolerance) {
  if (same_number(a, b)) return true;
  return tolerance > 0 && std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= tolerance;
}

}  // namespace collar::test
