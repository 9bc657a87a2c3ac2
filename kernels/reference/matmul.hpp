// SPDX-License-Identifier: Apache-2.0
// The fully connected layer and its gradients written as their definitions. Arguments as in
// kernels/matmul.hpp; types, rounding and sums as in reference/conv.hpp.
#pragma once

#include "kernels/core/view.hpp"

namespace collar::kernels::reference {

void linear_forward(ConstView x, ConstView w, ConstView bias, View y);
void linear_backward_data(ConstView dy, ConstView w, View dx);
void linear_backward_weights(ConstView x, ConstView dy, View dw, View dbias, bool accumulate);

}  // namespace collar::kernels::reference
