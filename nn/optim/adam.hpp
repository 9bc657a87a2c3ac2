// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019: weight decay apart from the
// gradient), with torch.optim's defaults, order of operations and roundings. The moments are f32.
#pragma once

#include "nn/optim/optimizer.hpp"

namespace collar::nn {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< times the parameter, added to its gradient
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< the parameter is multiplied by 1 - lr * weight_decay
};

class Adam : public Optimizer {
 public:
  /// Throws UsageError for an option outside its range; further as Optimizer.
  explicit Adam(const Parameters& parameters, const AdamOptions& options = {});
  explicit Adam(const std::vector<ParameterGroup<AdamOptions>>& groups);

  std::vector<double> learning_rates() const override;
  void set_momentum(double momentum) override;

 protected:
  Adam(const std::vector<ParameterGroup<AdamOptions>>& groups, bool decoupled);

 private:
  std::vector<std::string_view> state_names() const override;
  void set_learning_rate(std::size_t group, double rate) override { options_[group].lr = rate; }
  void update_piece(DeviceContext& context, const Piece& piece) override;

  std::vector<AdamOptions> options_;
  bool decoupled_;
};

class AdamW final : public Adam {
 public:
  explicit AdamW(const Parameters& parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParameterGroup<AdamWOptions>>& groups);
};

}  // namespace collar::nn
