// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over N, H and W, with what follows it in a residual network as part of the
// same operation.
#pragma once

#include <utility>

#include "engine/ops/norm.hpp"
#include "nn/module.hpp"

namespace collar::nn {

/// weight, bias, running_mean, running_var [channels] and num_batches_tracked (i64, a scalar), as
/// torch.nn.BatchNorm2d. In training it normalises with the batch's statistics and moves the
/// running ones, frozen or not.
class BatchNorm2d final : public Module {
 public:
  struct Options {
    double epsilon = 1e-5;
    double momentum = 0.1;  ///< new = (1 - momentum) old + momentum batch
  };
  /// What happens to the normalised values: y = relu(z + residual).
  struct Epilogue {
    bool relu = false;
    Tensor residual{};  ///< undefined: none
  };

  BatchNorm2d(std::int64_t channels, const Options& options);
  explicit BatchNorm2d(std::int64_t channels) : BatchNorm2d(channels, Options()) {}

  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  Tensor forward(Tensor x, const Epilogue& epilogue);
  using Module::operator();
  Tensor operator()(Tensor x, const Epilogue& epilogue) { return forward(std::move(x), epilogue); }

  /// Makes the weight 0: a residual block that ends in this layer starts as the identity.
  void zero_weight();

  /// Whether training moves the running statistics. Only logical rank 0 of a job lets it.
  void set_track_statistics(bool track) { track_statistics_ = track; }
  /// Shares the batch's statistics with other ranks (synchronised batch normalisation). Null: each
  /// for itself. The exchange must outlive the backward pass.
  void set_exchange(const StatisticsExchange* exchange) { exchange_ = exchange; }

 private:
  void reset_parameters(std::uint64_t seed, const std::string& path) override;

  Options options_;
  Tensor weight_;
  Tensor bias_;
  Tensor running_mean_;
  Tensor running_var_;
  Tensor batches_tracked_;
  bool track_statistics_ = true;
  const StatisticsExchange* exchange_ = nullptr;
};

/// set_track_statistics for every batch norm of a model.
void set_track_statistics(Module& model, bool track);
/// set_exchange for every batch norm of a model.
void set_statistics_exchange(Module& model, const StatisticsExchange* exchange);

}  // namespace collar::nn
