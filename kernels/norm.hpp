// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with its residual addition and ReLU fused: one pass over memory each way
// instead of three.
//   z = (x - mean) * inv_std * weight + bias [+ residual];  y = relu ? max(z, 0) : z
// x, residual, y, dy, dx: [N, C, H, W] or [N, C], any layout (all the same one), f32 or bf16;
// everything indexed by channel is f32. A ReLU keeps one bit an element for the backward pass: bit
// i of the mask (byte i/8, bit i%8) says that the gradient passes at storage position i, i.e. !(y
// <= 0) of the stored y: not at zero, but at NaN, as in PyTorch. Each result depends on neither the
// number of threads nor, in the blocked layouts, the instruction set.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// How a group of ranks shares statistics (synchronised batch normalisation). Left empty, each rank
/// has its own.
struct StatisticsExchange {
  /// Turns this rank's per-channel mean and m2 (sum of squared deviations) of `count` values into
  /// the group's, in place, and returns the group's count.
  std::function<double(View mean, View m2, double count)> merge_moments;
  /// Replaces [2, C] per-channel sums over `count` values by the group's sums, in place, and
  /// returns the group's count.
  std::function<double(View sums, double count)> add_sums;

  explicit operator bool() const { return static_cast<bool>(merge_moments); }
};

struct BatchNormTraining {
  ConstView x;
  ConstView residual;  ///< may be left out
  ConstView weight;    ///< [C], may be left out (ones)
  ConstView bias;      ///< [C], may be left out (zeros)
  View y;              ///< may be x's or the residual's memory
  View mask;     ///< u8 [ceil(numel/8)]; left out when no backward pass will come or relu is false
  View mean;     ///< [C], written: kept for the backward pass
  View inv_std;  ///< [C], written: 1/sqrt(variance + epsilon), population variance
  View running_mean;  ///< [C], moved by `momentum` towards the batch's; may be left out
  View running_var;   ///< the same, towards the unbiased variance
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool relu = false;
};
/// Normalises with the batch's statistics. A batch (of the whole group) needs two values a channel:
/// throws ShapeError if the group has fewer. An empty batch of one rank takes part in the exchange;
/// without one it leaves everything as it is.
void batch_norm_training(CpuContext& context, const BatchNormTraining& args,
                         const StatisticsExchange& exchange);

struct BatchNormInference {
  ConstView x;
  ConstView residual;
  ConstView weight;
  ConstView bias;
  ConstView mean;  ///< running mean
  ConstView var;   ///< running variance
  View y;
  View mask;
  View inv_std;  ///< [C], written for a backward pass; may be left out
  double epsilon = 1e-5;
  bool relu = false;
};
/// Normalises with given statistics.
void batch_norm_inference(CpuContext& context, const BatchNormInference& args);

struct BatchNormBackward {
  /// The upstream gradient g is their sum (rounded to their type) where the mask passes it; the
  /// second may be left out.
  std::array<ConstView, 2> dy;
  ConstView x;  ///< may be left out when neither dweight nor dx with batch_statistics is wanted
  ConstView weight;                ///< may be left out
  ConstView mean;                  ///< as used in the forward pass
  ConstView inv_std;               ///< as used in the forward pass
  ConstView mask;                  ///< left out when there was no ReLU
  View dx;                         ///< may be left out; may be the memory of one dy
  View dresidual;                  ///< g; may be left out; may be the memory of one dy
  View dweight;                    ///< [C], may be left out; this rank's, also with an exchange
  View dbias;                      ///< [C], may be left out; this rank's, also with an exchange
  bool accumulate_affine = false;  ///< add to dweight and dbias instead of writing them
  bool batch_statistics = true;    ///< false: mean and inv_std were constants (inference mode)
};
/// dweight = sum g (x - mean) inv_std, dbias = sum g,
/// dx = weight inv_std (g - [dbias + (x - mean) inv_std dweight] / count), without [...] for
/// constant statistics. The sums of an empty batch are zeros.
void batch_norm_backward(CpuContext& context, const BatchNormBackward& args,
                         const StatisticsExchange& exchange);

}  // namespace collar::kernels
