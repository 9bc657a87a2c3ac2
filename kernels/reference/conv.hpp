// SPDX-License-Identifier: Apache-2.0
// The convolution and its gradients written as their definitions: the oracle of the tests, and the
// way out for types and empty shapes that a backend does not handle. Arguments as in
// kernels/conv.hpp, any layout; x and y are f32, bf16 or f16. Weights are rounded to that type
// first. Sums are f64 in which products of f32 are exact, so a result is the true value rounded
// once, whatever the order of addition.
#pragma once

#include "kernels/conv.hpp"

namespace collar::kernels::reference {

void conv2d_forward(ConstView x, ConstView w, ConstView bias, View y,
                    const Conv2dGeometry& geometry);
void conv2d_backward_data(ConstView dy, ConstView w, View dx, const Conv2dGeometry& geometry);
void conv2d_backward_weights(ConstView x, ConstView dy, View dw, View dbias, bool accumulate,
                             const Conv2dGeometry& geometry);

}  // namespace collar::kernels::reference
