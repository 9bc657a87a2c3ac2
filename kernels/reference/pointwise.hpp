// SPDX-License-Identifier: Apache-2.0
// Broadcasting arithmetic and ReLU, element by element: the oracle of the tests. Contracts as in
// kernels/pointwise.hpp.
#pragma once

#include "kernels/pointwise.hpp"

namespace collar::kernels::reference {

void binary(BinaryOp op, ConstView a, ConstView b, View y);
void relu_forward(ConstView x, View y, View mask);
void relu_backward(ConstView dy, ConstView mask, View dx);

}  // namespace collar::kernels::reference
