// SPDX-License-Identifier: Apache-2.0
// From a DType known at run time to a C++ type known at compile time: the one switch of a launcher.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "kernels/core/dtype.hpp"
#include "kernels/core/error.hpp"

namespace collar {

/// Calls function(std::type_identity<T>{}) with T the element type: float, bfloat16 or float16.
/// Throws ShapeError for any other type.
template <typename Function>
void dispatch_float(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32:
      return function(std::type_identity<float>{});
    case DType::bf16:
      return function(std::type_identity<bfloat16>{});
    case DType::f16:
      return function(std::type_identity<float16>{});
    default:
      throw ShapeError(fmt::format("expected f32, bf16 or f16, got {}", name_of(dtype)));
  }
}

/// The same with double among the types: every floating type.
template <typename Function>
void dispatch_floating(DType dtype, Function&& function) {
  if (dtype == DType::f64) return function(std::type_identity<double>{});
  return dispatch_float(dtype, function);
}

/// The same for every element type.
template <typename Function>
void dispatch_any(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::u8:
      return function(std::type_identity<std::uint8_t>{});
    case DType::i8:
      return function(std::type_identity<std::int8_t>{});
    case DType::i32:
      return function(std::type_identity<std::int32_t>{});
    case DType::i64:
      return function(std::type_identity<std::int64_t>{});
    case DType::boolean:
      return function(std::type_identity<bool>{});
    default:
      return dispatch_floating(dtype, function);
  }
}

}  // namespace collar
