// SPDX-License-Identifier: Apache-2.0
// Checks a gradient against central differences of the function itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::test {

/// Result of a check: how many elements were compared, how many lay at a kink, and the first that
/// disagreed.
struct GradientCheck {
  int compared = 0;
  int kinks = 0;
  std::string failure;  ///< empty if all agreed
};

/// Compares the gradient of `function` (inputs to a scalar) with central differences for every
/// element of every input, which are made leaves. An element where the slopes to the right and to
/// the left disagree, or those of two step sizes, lies at a kink (a ReLU or a maximum changes
/// sides) and is left out. Inputs should be of size about 1. float32 functions give differences
/// with an error of about 1e-7 |f| / step, hence the tolerance of 6e-3 of the largest gradient.
GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              std::vector<Tensor> inputs, double step = 1e-2);

}  // namespace collar::test
