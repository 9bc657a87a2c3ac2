// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution (cross-correlation, as everywhere in deep learning) and its two
// gradients. Shapes: x [N, C, H, W]; w [K, C/groups, R, S], always plain f32 (the master); y [N, K,
// P, Q]. x, dx, y and dy have one data type, f32 or bf16, which is also the type the products are
// formed in; sums are f32. Nothing here allocates tensors; scratch comes from the context.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "kernels/runtime/packed_weights.hpp"

namespace collar::kernels {

struct Conv2dGeometry {
  std::array<std::int64_t, 2> stride{1, 1};    ///< rows, columns
  std::array<std::int64_t, 2> padding{0, 0};   ///< zeros on both sides
  std::array<std::int64_t, 2> dilation{1, 1};  ///< 1: neighbours
  std::int64_t groups = 1;

  friend bool operator==(const Conv2dGeometry&, const Conv2dGeometry&) = default;
};

/// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 for both axes. Throws
/// ShapeError for numbers that make no window, and for a window that does not fit.
Shape conv2d_output_shape(const Shape& x, const Shape& w, const Conv2dGeometry& geometry);

/// The layouts a backend is fastest with, for x and for y. A caller that has x in another layout
/// converts it first.
struct Conv2dLayouts {
  Layout x;
  Layout y;
};
Conv2dLayouts conv2d_layouts(const CpuContext& context, const Shape& x, const Shape& w,
                             const Conv2dGeometry& geometry);

/// y = x * w + bias; bias [K] f32 may be left out.
void conv2d_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y,
                    const Conv2dGeometry& geometry);

/// dx from dy. dx has x's layout, dy has y's.
void conv2d_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx,
                          const Conv2dGeometry& geometry);

/// dw [K, C/groups, R, S] plain f32 and dbias [K] f32: written, or added to if `accumulate`. Either
/// may be left out; without dw, x is not read.
void conv2d_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate, const Conv2dGeometry& geometry);

}  // namespace collar::kernels
