// SPDX-License-Identifier: Apache-2.0
// Convolution and the fully connected layer.
#pragma once

#include "engine/tensor.hpp"
#include "kernels/conv.hpp"

namespace collar {

using Conv2dOptions = kernels::Conv2dGeometry;

/// torch.nn.functional.conv2d: x [N, C, H, W], weight [K, C/groups, R, S] f32, bias [K] f32 or
/// undefined; gives [N, K, P, Q] in x's type (f32 or bf16). The layout of the result is what the
/// backend is fastest with.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options = {});

/// torch.nn.functional.linear: x [N, I], weight [O, I] f32, bias [O] f32 or undefined; gives [N, O]
/// in x's type.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace collar
