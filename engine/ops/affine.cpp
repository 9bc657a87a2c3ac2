// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/affine.hpp"

#include "engine/ops/dispatch.hpp"
#include "kernels/pointwise.hpp"

namespace collar::ops {

AffineTargets affine_targets(autograd::BackwardCall& call, DeviceContext& context,
                             std::size_t weight, std::size_t bias) {
  AffineTargets targets;
  bool weight_accumulates = false;
  bool bias_accumulates = false;
  if (call.needs(weight)) {
    const autograd::GradientTarget target = call.target(weight);
    targets.weight = target.view;
    weight_accumulates = target.accumulate;
  }
  if (call.needs(bias)) {
    const autograd::GradientTarget target = call.target(bias);
    targets.bias = target.view;
    bias_accumulates = target.accumulate;
  }
  targets.accumulate = weight_accumulates || bias_accumulates;
  const auto zero = [&](const View& view) {
    on(context, [&](auto& device) { kernels::fill(device, view, 0); });
  };
  if (targets.accumulate && targets.weight && !weight_accumulates) zero(targets.weight);
  if (targets.accumulate && targets.bias && !bias_accumulates) zero(targets.bias);
  return targets;
}

}  // namespace collar::ops
