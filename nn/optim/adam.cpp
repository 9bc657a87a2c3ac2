// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/adam.hpp"

#include <fmt/format.h>

#include "kernels/core/error.hpp"
#include "kernels/optimizer.hpp"
#include "nn/optim/groups.hpp"

namespace collar::nn {
namespace {

void check(const AdamOptions& options) {
  require_option("Adam", "lr", options.lr, options.lr >= 0);
  require_option("Adam", "beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1);
  require_option("Adam", "beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1);
  require_option("Adam", "epsilon", options.epsilon, options.epsilon >= 0);
  require_option("Adam", "weight_decay", options.weight_decay, options.weight_decay >= 0);
}

std::vector<ParameterGroup<AdamOptions>> as_adam(
    const std::vector<ParameterGroup<AdamWOptions>>& groups) {
  std::vector<ParameterGroup<AdamOptions>> converted;
  for (const auto& [parameters, options] : groups) {
    converted.push_back({parameters,
                         {.lr = options.lr,
                          .beta1 = options.beta1,
                          .beta2 = options.beta2,
                          .epsilon = options.epsilon,
                          .weight_decay = options.weight_decay}});
  }
  return converted;
}

}  // namespace

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups, bool decoupled)
    : Optimizer(parameters_of(groups)), options_(options_of(groups)), decoupled_(decoupled) {
  for (const AdamOptions& options : options_) check(options);
}

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups) : Adam(groups, false) {}

Adam::Adam(const Parameters& parameters, const AdamOptions& options)
    : Adam(std::vector<ParameterGroup<AdamOptions>>{{parameters, options}}, false) {}

std::vector<double> Adam::learning_rates() const {
  std::vector<double> rates;
  for (const AdamOptions& options : options_) rates.push_back(options.lr);
  return rates;
}

void Adam::set_momentum(double momentum) {
  for (AdamOptions& options : options_) options.beta1 = momentum;
}

std::vector<std::string_view> Adam::state_names() const {
  return {"exp_avg", "exp_avg_sq"};
}

void Adam::update_piece(DeviceContext& context, const Piece& piece) {
  const AdamOptions& options = options_[piece.group];
  const kernels::AdamStep step{.lr = options.lr,
                               .beta1 = options.beta1,
                               .beta2 = options.beta2,
                               .epsilon = options.epsilon,
                               .weight_decay = options.weight_decay,
                               .decoupled = decoupled_,
                               .step = piece.step};
  const Shape shape{piece.count};
  std::visit(
      [&](auto& device) {
        kernels::adam(device, View{piece.parameter, DType::f32, shape},
                      ConstView{piece.gradient, DType::f32, shape},
                      View{piece.state[0], DType::f32, shape},
                      View{piece.state[1], DType::f32, shape}, step);
      },
      context);
}

AdamW::AdamW(const std::vector<ParameterGroup<AdamWOptions>>& groups)
    : Adam(as_adam(groups), true) {}

AdamW::AdamW(const Parameters& parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParameterGroup<AdamWOptions>>{{parameters, options}}) {}

}  // namespace collar::nn
