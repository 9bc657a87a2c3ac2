// SPDX-License-Identifier: Apache-2.0
// Broadcasting and its opposite, without history: the parts arithmetic and reductions are made of.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/pointwise.hpp"

namespace collar::ops {

/// The common shape of a and b under NumPy's rules. Throws ShapeError if there is none.
Shape broadcast_shape(const Shape& a, const Shape& b);

/// a op b. Equal shapes keep a's layout; others are made plain.
Tensor binary(kernels::BinaryOp op, const Tensor& a, const Tensor& b);

/// x summed over the dimensions that `shape` lacks or has with extent 1: what brings a gradient
/// back to the shape of an input that was broadcast. x itself if the shapes agree.
Tensor sum_to_shape(const Tensor& x, const Shape& shape);

/// x times factor, in f32 and rounded once.
Tensor scaled(const Tensor& x, double factor);

/// x repeated to `shape` (x's shape must broadcast to it). Plain.
Tensor expanded(const Tensor& x, const Shape& shape);

}  // namespace collar::ops
