// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, dampening, Nesterov's variant and weight decay:
// torch.optim.SGD's arithmetic, bit for bit.
#pragma once

#include "nn/optim/optimizer.hpp"

namespace collar::nn {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class SGD final : public Optimizer {
 public:
  /// Throws UsageError for an option outside its range; further as Optimizer.
  explicit SGD(const Parameters& parameters, const SGDOptions& options = {});
  explicit SGD(const std::vector<ParameterGroup<SGDOptions>>& groups);

  std::vector<double> learning_rates() const override;
  void set_momentum(double momentum) override;

 private:
  /// A buffer is kept only if some group has momentum.
  std::vector<std::string_view> state_names() const override;
  void set_learning_rate(std::size_t group, double rate) override { options_[group].lr = rate; }
  void update_piece(DeviceContext& context, const Piece& piece) override;

  std::vector<SGDOptions> options_;
};

}  // namespace collar::nn
