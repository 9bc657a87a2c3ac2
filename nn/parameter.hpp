// SPDX-License-Identifier: Apache-2.0
// A tensor with the name it has in a model.
#pragma once

#include <vector>

#include "engine/named_tensor.hpp"

namespace collar::nn {

/// The name is the path through the modules, as in PyTorch: "layer1.0.conv1.weight".
using Parameter = NamedTensor;
using Parameters = std::vector<Parameter>;

}  // namespace collar::nn
