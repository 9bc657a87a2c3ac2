// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/clip.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"
#include "kernels/pointwise.hpp"
#include "kernels/reduce.hpp"

namespace collar::nn {
namespace {

template <typename Function>
void for_each_gradient(const Parameters& parameters, const Function& function) {
  for (const Parameter& parameter : parameters) {
    Tensor gradient = parameter.tensor.grad();
    if (!gradient.defined()) continue;
    DeviceContext* context = parameter.tensor.context();
    if (context == nullptr) {
      throw UsageError(fmt::format("gradient norm: {} is on no device", parameter.name));
    }
    std::visit([&](auto& device) { function(device, gradient); }, *context);
  }
}

}  // namespace

double gradient_norm(const Parameters& parameters) {
  double squares = 0;
  for_each_gradient(parameters, [&](auto& device, const Tensor& gradient) {
    squares += kernels::squared_norm(device, gradient.view());
  });
  return std::sqrt(squares);
}

double clip_grad_norm(const Parameters& parameters, double max_norm) {
  if (!(max_norm >= 0)) {
    throw UsageError(fmt::format("clip_grad_norm: max_norm must be at least 0, not {}", max_norm));
  }
  const double norm = gradient_norm(parameters);
  const double wanted = max_norm / (norm + 1e-6);
  const double factor = wanted > 1 ? 1 : wanted;  // NaN stays
  for_each_gradient(parameters, [&](auto& device, Tensor& gradient) {
    kernels::scale(device, gradient.view(), gradient.view(), static_cast<float>(factor));
  });
  return norm;
}

}  // namespace collar::nn
