// SPDX-License-Identifier: Apache-2.0
// Batch normalisation, with the residual addition and the ReLU that follow it in a ResNet as part
// of the operation.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/norm.hpp"

namespace collar {

using kernels::StatisticsExchange;

/// What a batch-norm layer owns, all f32 [C]. Any of them may be undefined: no affine part, no
/// running statistics.
struct BatchNormParameters {
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
};

struct BatchNormOptions {
  bool training = true;  ///< normalise with the batch's statistics; false: with the running ones
  bool track_statistics = true;  ///< training: move the running statistics
  double momentum = 0.1;         ///< new = (1 - momentum) old + momentum batch
  double epsilon = 1e-5;
  bool relu = false;
  Tensor residual;  ///< added before the ReLU; undefined: none
  const StatisticsExchange* exchange =
      nullptr;  ///< outlives the backward pass; null: this rank's statistics alone
};

/// torch.nn.functional.batch_norm on [N, C, H, W] or [N, C] (f32 or bf16), then + residual, then
/// ReLU if asked. The running variance is the unbiased one. Training with one value a channel (of
/// the whole group, with an exchange) is an error. Where no gradient is recorded, the result takes
/// the memory of an x that nobody else holds (a temporary): half the memory to touch.
Tensor batch_norm(Tensor x, const BatchNormParameters& parameters,
                  const BatchNormOptions& options = {});

}  // namespace collar
