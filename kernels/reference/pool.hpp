// SPDX-License-Identifier: Apache-2.0
// Pooling as PyTorch's CPU code does it, window by window, gradients scattered in double: the
// oracle of the tests. Contracts as in kernels/pool.hpp.
#pragma once

#include "kernels/pool.hpp"

namespace collar::kernels::reference {

void max_pool2d_forward(ConstView x, View y, View index, const Pool2dGeometry& geometry);
void max_pool2d_backward(ConstView dy, ConstView index, View dx);
void avg_pool2d_forward(ConstView x, View y, const Pool2dGeometry& geometry);
void avg_pool2d_backward(ConstView dy, View dx, const Pool2dGeometry& geometry);
void global_avg_pool_forward(ConstView x, View y);
void global_avg_pool_backward(ConstView dy, View dx);

}  // namespace collar::kernels::reference
