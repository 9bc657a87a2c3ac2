// SPDX-License-Identifier: Apache-2.0
// Pointers into views whose element type is known only at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/view.hpp"

namespace collar::kernels {

/// The element at a storage position, or null if the argument was left out.
inline const void* at(const ConstView& view, std::int64_t position) {
  if (!view) return nullptr;
  return view.as<std::byte>() + position * static_cast<std::int64_t>(size_of(view.dtype));
}
inline void* at(const View& view, std::int64_t position) {
  if (!view) return nullptr;
  return view.as<std::byte>() + position * static_cast<std::int64_t>(size_of(view.dtype));
}

/// Element i of an f32, bf16 or f16 view as a float, and the way back.
inline float read_float(const ConstView& view, std::int64_t i) {
  switch (view.dtype) {
    case DType::bf16:
      return static_cast<float>(view.as<bfloat16>()[i]);
    case DType::f16:
      return static_cast<float>(view.as<float16>()[i]);
    default:
      return view.as<float>()[i];
  }
}
inline void write_float(const View& view, std::int64_t i, float value) {
  switch (view.dtype) {
    case DType::bf16:
      view.as<bfloat16>()[i] = bfloat16(value);
      return;
    case DType::f16:
      view.as<float16>()[i] = float16(value);
      return;
    default:
      view.as<float>()[i] = value;
  }
}

}  // namespace collar::kernels
