// SPDX-License-Identifier: Apache-2.0
// The norm of all gradients together, and clipping by it.
#pragma once

#include "nn/parameter.hpp"

namespace collar::nn {

/// The 2-norm of the gradients of all parameters that have one, in f64. Formed from one sum of
/// squares a parameter, in the order given, so neither buckets nor threads change it. 0 without
/// gradients.
double gradient_norm(const Parameters& parameters);

/// torch's clip_grad_norm_: every gradient times min(1, max_norm / (norm + 1e-6)), also where that
/// is 1. Returns the norm before. A norm of infinity makes finite gradients 0; NaN makes all NaN.
double clip_grad_norm(const Parameters& parameters, double max_norm);

}  // namespace collar::nn
