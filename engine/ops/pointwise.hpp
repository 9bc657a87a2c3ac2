// SPDX-License-Identifier: Apache-2.0
// Arithmetic element by element, activations, dropout, and changes of shape. Types f32 and bf16.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/pointwise.hpp"

namespace collar {

using kernels::DropoutKey;

/// a + b, a - b, a * b with NumPy's broadcasting. Both of one type.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
/// x times a number, in f32 and rounded once.
Tensor mul(const Tensor& x, double factor);

/// max(x, 0). The gradient at 0 is 0; NaN passes, and lets its gradient pass.
Tensor relu(const Tensor& x);

/// Zeroes each element with probability p and divides the others by 1 - p. The mask is a function
/// of the key and the element's logical position alone, so the layer, the step and the rank decide
/// it, not the order of calls or the layout.
Tensor dropout(const Tensor& x, double p, const DropoutKey& key);

/// The same elements in logical order under another shape; one extent may be -1.
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
/// Dimensions from `start` on become one.
Tensor flatten(const Tensor& x, int start = 1);

}  // namespace collar
