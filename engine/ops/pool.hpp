// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [N, C, H, W], and over whole planes. Types f32 and bf16, any layout.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/pool.hpp"

namespace collar {

using Pool2dOptions = kernels::Pool2dGeometry;

/// torch.nn.functional.max_pool2d. NaN wins; of equal values the first takes the gradient.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
/// The same with the winners' positions (i32, in their planes).
struct MaxPoolResult {
  Tensor values;
  Tensor index;
};
MaxPoolResult max_pool2d_with_index(const Tensor& x, const Pool2dOptions& options);

/// torch.nn.functional.avg_pool2d; its windows are never dilated, whatever the options say.
Tensor avg_pool2d(const Tensor& x, Pool2dOptions options);

/// The mean over H and W: [N, C, H, W] to [N, C].
Tensor global_avg_pool(const Tensor& x);

}  // namespace collar
