// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

#include <cmath>

#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {

void adam(CpuContext& context, View parameter, ConstView gradient, View m, View v,
          const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  const bool decoupled = step.decoupled;
  const AdamCoefficients coefficients{
      .decay = static_cast<float>(decoupled ? 1 - step.lr * step.weight_decay : 1.0),
      .l2 = static_cast<float>(decoupled ? 0.0 : step.weight_decay),
      .m_weight = static_cast<float>(1 - step.beta1),
      .beta2 = static_cast<float>(step.beta2),
      .v_weight = static_cast<float>(1 - step.beta2),
      .v_scale = static_cast<float>(std::sqrt(1 - std::pow(step.beta2, t))),
      .epsilon = static_cast<float>(step.epsilon),
      .step = static_cast<float>(-(step.lr / (1 - std::pow(step.beta1, t))))};
  const UpdateLoops& loops = loops_for(context.isa()).update;
  parallel_ranges(context, parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
    loops.adam(end - begin, parameter.as<float>() + begin, gradient.as<float>() + begin,
               m.as<float>() + begin, v.as<float>() + begin, coefficients);
  });
}

void sgd(CpuContext& context, View parameter, ConstView gradient, View buffer,
         const SgdStep& step) {
  const SgdCoefficients coefficients{.weight_decay = static_cast<float>(step.weight_decay),
                                     .momentum = static_cast<float>(step.momentum),
                                     .gradient_weight = static_cast<float>(1 - step.dampening),
                                     .step = static_cast<float>(-step.lr),
                                     .nesterov = step.nesterov};
  const UpdateLoops& loops = loops_for(context.isa()).update;
  parallel_ranges(context, parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
    float* p = parameter.as<float>() + begin;
    const float* g = gradient.as<float>() + begin;
    if (buffer) {
      loops.sgd_momentum(end - begin, p, g, buffer.as<float>() + begin, step.first, coefficients);
    } else {
      loops.sgd(end - begin, p, g, coefficients);
    }
  });
}

}  // namespace collar::kernels
