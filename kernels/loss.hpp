// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax and cross-entropy over the rows of [N, C] (plain). Input f32 or bf16;
// computed in f32.
#pragma once

#include <cstdint>

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// y = exp(x - max) / sum of them over each row, y of x's shape and type. A row with NaN, with
/// infinity or with nothing but -infinity gives NaN.
void softmax_forward(CpuContext& context, ConstView x, View y);
/// dx = y (dy - sum(y dy))
void softmax_backward(CpuContext& context, ConstView y, ConstView dy, View dx);
/// y = x - max - log(sum of exp(x - max)) over each row, y of x's shape and type.
void log_softmax_forward(CpuContext& context, ConstView x, View y);
/// dx = dy - exp(y) sum(dy)
void log_softmax_backward(CpuContext& context, ConstView y, ConstView dy, View dx);

enum class Reduction : std::uint8_t { none, sum, mean };

struct CrossEntropy {
  ConstView logits;  ///< [N, C]
  ConstView target;  ///< i64 [N], or f32 [N, C]: probabilities
  ConstView weight;  ///< [C] f32, may be left out
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
  View loss;      ///< f32: [N] for none, [] otherwise
  View gradient;  ///< f32 [N, C], may be left out: d loss / d logits for an upstream gradient of 1
};
/// PyTorch's cross_entropy with all its options; loss and gradient in one pass over the logits.
/// With the reduction `mean`, index targets divide by the sum of the targets' weights,
/// probabilities by N; all targets ignored gives NaN and a zero gradient. Targets outside [0, C)
/// other than ignore_index are the caller's to refuse.
void cross_entropy(CpuContext& context, const CrossEntropy& args);

}  // namespace collar::kernels
