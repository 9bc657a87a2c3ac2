// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax and cross-entropy over the rows of [N, C]. Logits f32 or bf16; losses are
// f32.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/loss.hpp"

namespace collar {

using kernels::Reduction;

/// torch.softmax(x, 1) and torch.log_softmax(x, 1): x [N, C] plain; the result has x's shape and
/// type. Computed in f32, the maximum subtracted first, so that no finite row overflows.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);

struct CrossEntropyOptions {
  Tensor weight{};                   ///< f32 [C] or undefined
  std::int64_t ignore_index = -100;  ///< for index targets
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
};

/// torch.nn.functional.cross_entropy: logits [N, C]; target i64 [N] of class indices, or f32 [N, C]
/// of probabilities. Gives f32: [N] for Reduction::none (0 where the target is ignored), [] for sum
/// and mean. The mean divides by the weights of the targets that count, with probabilities by N; if
/// all are ignored it is NaN with a gradient of zero, as in torch. The target gets no gradient. A
/// class outside 0..C-1 is an error that names its row; finding one waits for the device.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});

}  // namespace collar
