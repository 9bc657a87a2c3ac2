// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy from their definitions, in double: the oracle of the tests. Contracts
// as in kernels/loss.hpp.
#pragma once

#include "kernels/loss.hpp"

namespace collar::kernels::reference {

void softmax_forward(ConstView x, View y);
void softmax_backward(ConstView y, ConstView dy, View dx);
void log_softmax_forward(ConstView x, View y);
void log_softmax_backward(ConstView y, ConstView dy, View dx);
void cross_entropy(const CrossEntropy& args);

}  // namespace collar::kernels::reference
