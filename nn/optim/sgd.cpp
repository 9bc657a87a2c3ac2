// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/sgd.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/core/error.hpp"
#include "kernels/optimizer.hpp"
#include "nn/optim/groups.hpp"

namespace collar::nn {
namespace {

void check(const SGDOptions& options) {
  require_option("SGD", "lr", options.lr, options.lr >= 0);
  require_option("SGD", "momentum", options.momentum, options.momentum >= 0);
  require_option("SGD", "weight_decay", options.weight_decay, options.weight_decay >= 0);
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError(
        fmt::format("SGD: nesterov needs a momentum above 0 and no dampening, not {} and {}",
                    options.momentum, options.dampening));
  }
}

}  // namespace

SGD::SGD(const std::vector<ParameterGroup<SGDOptions>>& groups)
    : Optimizer(parameters_of(groups)), options_(options_of(groups)) {
  for (const SGDOptions& options : options_) check(options);
}

SGD::SGD(const Parameters& parameters, const SGDOptions& options)
    : SGD(std::vector<ParameterGroup<SGDOptions>>{{parameters, options}}) {}

std::vector<double> SGD::learning_rates() const {
  std::vector<double> rates;
  for (const SGDOptions& options : options_) rates.push_back(options.lr);
  return rates;
}

void SGD::set_momentum(double momentum) {
  for (SGDOptions& options : options_) options.momentum = momentum;
}

std::vector<std::string_view> SGD::state_names() const {
  const bool any_momentum = std::any_of(options_.begin(), options_.end(),
                                        [](const auto& options) { return options.momentum != 0; });
  return any_momentum ? std::vector<std::string_view>{"momentum_buffer"}
                      : std::vector<std::string_view>{};
}

void SGD::update_piece(DeviceContext& context, const Piece& piece) {
  const SGDOptions& options = options_[piece.group];
  const kernels::SgdStep step{.lr = options.lr,
                              .momentum = options.momentum,
                              .dampening = options.dampening,
                              .weight_decay = options.weight_decay,
                              .nesterov = options.nesterov,
                              .first = piece.step == 1};
  const Shape shape{piece.count};
  float* buffer = options.momentum != 0 ? piece.state[0] : nullptr;
  std::visit(
      [&](auto& device) {
        kernels::sgd(device, View{piece.parameter, DType::f32, shape},
                     ConstView{piece.gradient, DType::f32, shape}, View{buffer, DType::f32, shape},
                     step);
      },
      context);
}

}  // namespace collar::nn
