// SPDX-License-Identifier: Apache-2.0
// Gradients of a weight and its bias, which kernels write together.
#pragma once

#include "engine/autograd/node.hpp"

namespace collar::ops {

struct AffineTargets {
  View weight;              ///< empty if its gradient is not wanted
  View bias;                ///< the same
  bool accumulate = false;  ///< both are added to, or both overwritten
};

/// The targets of inputs `weight` and `bias` of a node. If one of them starts afresh and the other
/// does not, the fresh one is zeroed, so that one flag speaks for both.
AffineTargets affine_targets(autograd::BackwardCall& call, DeviceContext& context,
                             std::size_t weight, std::size_t bias);

}  // namespace collar::ops
