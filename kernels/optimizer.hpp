// SPDX-License-Identifier: Apache-2.0
// One update of a flat range of parameters, in place. All views: plain f32 of one length (any range
// of an arena). The arithmetic of one element stands in functors.hpp and has the roundings of
// PyTorch's single-tensor path.
#pragma once

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

struct AdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled =
      true;  ///< true: AdamW (p *= 1 - lr wd first); false: Adam (wd p is added to the gradient)
  std::int64_t step = 1;  ///< t, counted from 1
};
void adam(CpuContext& context, View parameter, ConstView gradient, View m, View v,
          const AdamStep& step);

struct SgdStep {
  double lr = 1e-2;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< the momentum buffer is set, not averaged
};
/// `buffer` is left out when momentum is 0.
void sgd(CpuContext& context, View parameter, ConstView gradient, View buffer, const SgdStep& step);

}  // namespace collar::kernels
