// SPDX-License-Identifier: Apache-2.0
// The fully connected layer and its gradients. Shapes: x [N, I], w [O, I] plain f32, y [N, O], bias
// [O] f32. x and y have one data type, f32 or bf16; sums are f32.
#pragma once

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "kernels/runtime/packed_weights.hpp"

namespace collar::kernels {

/// y = x wᵀ + bias; bias may be left out.
void linear_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y);

/// dx = dy w
void linear_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx);

/// dw = dyᵀ x and dbias = column sums of dy: written, or added to if `accumulate`. Either may be
/// left out; without dw, x is not read.
void linear_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate);

}  // namespace collar::kernels
