// SPDX-License-Identifier: Apache-2.0
// Batch normalisation as its formulas say, in double, channel by channel: the oracle of the tests.
// Contracts as in kernels/norm.hpp, without a group.
#pragma once

#include "kernels/norm.hpp"

namespace collar::kernels::reference {

void batch_norm_training(const BatchNormTraining& args);
void batch_norm_inference(const BatchNormInference& args);
void batch_norm_backward(const BatchNormBackward& args);

}  // namespace collar::kernels::reference
