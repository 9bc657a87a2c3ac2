// SPDX-License-Identifier: Apache-2.0
// Element by element: fill, scale, add, multiply, ReLU, dropout. f32 and bf16 unless said
// otherwise, all operands of one type; computed in f32 (f64 in f64).
#pragma once

#include <cstdint>

#include "kernels/core/view.hpp"
#include "kernels/functors.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// Every element becomes `value`, converted to y's type. All types.
void fill(CpuContext& context, View y, double value);
/// The same for host memory that is bound to no context, on the calling thread.
void fill_host(View y, double value);
/// y = x * factor, rounded once. Same shape and layout; may be the same memory. Any floating type.
void scale(CpuContext& context, ConstView x, View y, float factor);
/// y += x. Same shape and layout. Any floating type.
void add_in_place(CpuContext& context, View y, ConstView x);

enum class BinaryOp : std::uint8_t { add, subtract, multiply };
/// y = a op b with NumPy's broadcasting: shapes are aligned at the right, an extent of 1 repeats.
/// When a and b have y's shape any common layout will do; otherwise all are plain. Any floating
/// type.
void binary(CpuContext& context, BinaryOp op, ConstView a, ConstView b, View y);

/// y = max(x, 0), NaN stays NaN, -0 stays -0. mask (may be left out): as in norm.hpp.
void relu_forward(CpuContext& context, ConstView x, View y, View mask);
/// dx = mask ? dy : 0
void relu_backward(CpuContext& context, ConstView dy, ConstView mask, View dx);

/// y = x * (keep / (1 - p)): keep/(1-p) is formed first, p = 1 gives zeros. Element i (in logical
/// order, whatever the layout) is kept iff its uniform number (DropoutStream in functors.hpp) is >=
/// p. Forward and backward are the same function; x and y have one layout and may be the same
/// memory.
void dropout(CpuContext& context, ConstView x, View y, double p, const DropoutKey& key);

}  // namespace collar::kernels
