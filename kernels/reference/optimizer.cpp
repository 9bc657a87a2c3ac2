// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/optimizer.hpp"

#include <cmath>

#include "kernels/core/element.hpp"

namespace collar::kernels::reference {

void adam(View parameter, ConstView gradient, View m, View v, const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    double p = double{read_float(parameter, i)};
    double g = double{read_float(gradient, i)};
    if (step.decoupled) {
      p *= 1 - step.lr * step.weight_decay;
    } else {
      g += step.weight_decay * p;
    }
    const double m_now = step.beta1 * double{read_float(m, i)} + (1 - step.beta1) * g;
    const double v_now = step.beta2 * double{read_float(v, i)} + (1 - step.beta2) * g * g;
    const double m_hat = m_now / (1 - std::pow(step.beta1, t));
    const double v_hat = v_now / (1 - std::pow(step.beta2, t));
    p -= step.lr * m_hat / (std::sqrt(v_hat) + step.epsilon);
    write_float(m, i, static_cast<float>(m_now));
    write_float(v, i, static_cast<float>(v_now));
    write_float(parameter, i, static_cast<float>(p));
  }
}

void sgd(View parameter, ConstView gradient, View buffer, const SgdStep& step) {
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    const double p = double{read_float(parameter, i)};
    double g = double{read_float(gradient, i)} + step.weight_decay * p;
    if (buffer) {
      const double kept = step.momentum * double{read_float(buffer, i)};
      const double b = step.first ? g : kept + (1 - step.dampening) * g;
      write_float(buffer, i, static_cast<float>(b));
      g = step.nesterov ? g + step.momentum * b : b;
    }
    write_float(parameter, i, static_cast<float>(p - step.lr * g));
  }
}

}  // namespace collar::kernels::reference
