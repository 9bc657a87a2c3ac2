// SPDX-License-Identifier: Apache-2.0
// Max, average and global average pooling with PyTorch's rules. x [N, C, H, W], y [N, C, P, Q], any
// layout (both the same one), f32 or bf16; sums are f32.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

struct Pool2dGeometry {
  std::array<std::int64_t, 2> kernel{2, 2};
  std::array<std::int64_t, 2> stride{2, 2};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};  ///< max pooling only
  bool ceil_mode =
      false;  ///< round the output extent up; a window must start inside x or its left padding
  bool count_include_pad = true;  ///< average pooling: padding counts in the divisor (cells past
                                  ///< it, from ceil_mode, never)
};

/// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 for both axes, or, in ceil
/// mode, the same rounded up, less one if the last window would start behind x and its left
/// padding. Throws ShapeError for numbers that make no window, for a window that does not fit, and
/// for a padding of more than half the kernel.
Shape pool2d_output_shape(const Shape& x, const Pool2dGeometry& geometry);

/// Scans each window in row order and takes v if v > best or v is NaN: the first of equal values,
/// the last NaN. index (i32, y's shape and layout; may be left out) is the winner's position h * W
/// + w in its plane.
void max_pool2d_forward(CpuContext& context, ConstView x, View y, View index,
                        const Pool2dGeometry& geometry);
void max_pool2d_backward(CpuContext& context, ConstView dy, ConstView index, View dx,
                         const Pool2dGeometry& geometry);

void avg_pool2d_forward(CpuContext& context, ConstView x, View y, const Pool2dGeometry& geometry);
void avg_pool2d_backward(CpuContext& context, ConstView dy, View dx,
                         const Pool2dGeometry& geometry);

/// y [N, C] plain: the mean over H and W of x [N, C, H, W] in any layout.
void global_avg_pool_forward(CpuContext& context, ConstView x, View y);
void global_avg_pool_backward(CpuContext& context, ConstView dy, View dx);

}  // namespace collar::kernels
