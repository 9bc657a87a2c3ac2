// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax and cross-entropy over the rows of [N, C]. Logits f32 or bf16; losses are
// f32.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/loss.hpp"

namespace collar {

using kernels::Reduction;

Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);

struct CrossEntropyOptions {
  Tensor weight{};                   ///< f32 [C] or undefined
  std::int64_t ignore_index = -100;  ///< for index targets
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
};

/// torch.nn.functional.cross_entropy: logits [N, C]; target i64 [N] of class indices, or f32 [N, C]
/// of probabilities. The target gets no gradient. A class outside 0..C-1 is an error that names its
/// row.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});

}  // namespace collar
