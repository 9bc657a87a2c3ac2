// SPDX-License-Identifier: Apache-2.0
// A tensor with a name: what modules hand out, optimizers update and files store.
#pragma once

#include <string>

#include "engine/tensor.hpp"

namespace collar {

/// A handle: the tensor is shared with whoever else holds it.
struct NamedTensor {
  std::string name{};
  Tensor tensor{};
};

}  // namespace collar
