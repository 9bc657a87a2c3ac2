// SPDX-License-Identifier: Apache-2.0
// Element types, and the two 16-bit floats as C++ value types. Arithmetic is always done in float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collar {

enum class DType : std::uint8_t { f32, f64, bf16, f16, u8, i8, i32, i64, boolean };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}

/// "f32", "bf16", …: the names used on the command line and in messages.
std::string_view name_of(DType dtype);

/// The inverse of name_of. Throws UsageError that lists the names.
DType dtype_from_name(std::string_view name);

/// bfloat16: the upper half of a float. Conversion from float rounds to nearest even; NaN stays
/// NaN.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
};

/// IEEE binary16. Conversion from float rounds to nearest even, overflows to infinity, keeps
/// subnormals.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
};

static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2);

/// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace collar

#include "kernels/core/dtype_inline.hpp"
