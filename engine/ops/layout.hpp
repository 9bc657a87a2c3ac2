// SPDX-License-Identifier: Apache-2.0
// Conversions of type and layout. converted() is the plain function; cast() is the differentiable
// operation.
#pragma once

#include "engine/tensor.hpp"

namespace collar {

/// x in another layout and type; x itself if it already is. Not differentiable. Layouts of rank-4
/// f32 and bf16 tensors convert; other tensors are plain and stay so.
Tensor converted(const Tensor& x, Layout layout, DType dtype);
inline Tensor converted(const Tensor& x, Layout layout) {
  return converted(x, layout, x.dtype());
}

/// x with every element converted to `dtype` in its layout; the gradient is converted back. To a
/// narrower float it rounds to nearest, ties to even, and overflows to infinity; from a float to an
/// integer it truncates, out of range to the nearest and NaN to 0, and there is no gradient;
/// anything but zero is true. x itself if it has that type.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace collar
