// SPDX-License-Identifier: Apache-2.0
// A tensor with the name it has in a model: what modules hand out, optimizers update and files
// store.
#pragma once

#include <string>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::nn {

/// A handle: the tensor is shared with the module it belongs to.
struct Parameter {
  std::string name{};  ///< the path through the modules, as in PyTorch: "layer1.0.conv1.weight"
  Tensor tensor{};
};

using Parameters = std::vector<Parameter>;

}  // namespace collar::nn
