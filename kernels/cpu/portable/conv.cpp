// SPDX-License-Identifier: Apache-2.0
// The convolution and both gradients as products of a matrix with the patches of an image, in plain
// layout.
#include "kernels/conv.hpp"

#include <array>

#include "kernels/core/dispatch.hpp"
#include "kernels/cpu/portable/gemm.hpp"
#include "kernels/reference/conv.hpp"

namespace collar::kernels {
namespace {

using portable::multiply;

// The extents of one group, by their usual names.
struct Extents {
  Extents(const Shape& x, const Shape& w, const Shape& y, const Conv2dGeometry& geometry)
      : N(x[0]),
        C(x[1] / geometry.groups),
        H(x[2]),
        W(x[3]),
        K(w[0] / geometry.groups),
        R(w[2]),
        S(w[3]),
        P(y[2]),
        Q(y[3]),
        x_image(x[1] * H * W),
        y_image(w[0] * P * Q),
        taps(R * S) {}

  std::int64_t N, C, H, W, K, R, S, P, Q, x_image, y_image, taps;
};

// The pixel of an image that belongs to a position (n, p, q) and a tap (c, r, s): row
// (p * scale + offset + r * step) / divisor if that is a whole number and inside, else zero.
// Forwards the scale is the stride and the divisor one; backwards they change places and the steps
// are negative.
template <typename T>
struct Patches {
  const T* image;
  std::int64_t image_stride, channel_stride;      // elements
  std::array<std::int64_t, 2> extent;             // of the image
  std::array<std::int64_t, 2> positions, kernel;  // rows, columns
  std::array<std::int64_t, 2> scale, offset, step, divisor;

  struct Place {
    std::int64_t base, row, column;
  };

  Place position(std::int64_t j) const {
    const std::int64_t p = j / positions[1] % positions[0];
    const std::int64_t q = j % positions[1];
    return {j / positions[1] / positions[0] * image_stride, p * scale[0] + offset[0],
            q * scale[1] + offset[1]};
  }
  Place tap(std::int64_t l) const {
    const std::int64_t r = l / kernel[1] % kernel[0];
    const std::int64_t s = l % kernel[1];
    return {l / kernel[1] / kernel[0] * channel_stride, r * step[0], s * step[1]};
  }
  float at(const Place& a, const Place& b) const {
    std::int64_t row = a.row + b.row;
    std::int64_t column = a.column + b.column;
    if (divisor[0] != 1 || divisor[1] != 1) {
      if (row % divisor[0] != 0 || column % divisor[1] != 0) return 0.0F;
      row /= divisor[0];
      column /= divisor[1];
    }
    if (row < 0 || row >= extent[0] || column < 0 || column >= extent[1]) return 0.0F;
    return static_cast<float>(image[a.base + b.base + row * extent[1] + column]);
  }
};

// Patches as an operand: a row is a position and l runs over the taps, or the other way round.
template <typename T>
struct PositionRows : Patches<T> {
  auto row(std::int64_t i) const { return this->position(i); }
  auto inner(std::int64_t l) const { return this->tap(l); }
};
template <typename T>
struct TapRows : Patches<T> {
  auto row(std::int64_t i) const { return this->tap(i); }
  auto inner(std::int64_t l) const { return this->position(l); }
};

template <typename T>
Patches<T> input_patches(const T* x, const Extents& e, const Conv2dGeometry& g) {
  return {x,          e.x_image,  e.H * e.W, {e.H, e.W},
          {e.P, e.Q}, {e.R, e.S}, g.stride,  {-g.padding[0], -g.padding[1]},
          g.dilation, {1, 1}};
}

template <typename T>
Patches<T> gradient_patches(const T* dy, const Extents& e, const Conv2dGeometry& g) {
  return {dy,         e.y_image,  e.P * e.Q,
          {e.P, e.Q}, {e.H, e.W}, {e.R, e.S},
          {1, 1},     g.padding,  {-g.dilation[0], -g.dilation[1]},
          g.stride};
}

// The master weights of a group, W(k, c r s) or W(c, k r s), rounded to the type that products are
// formed in.
template <typename T>
struct Weights {
  const float* data;
  std::int64_t row_stride, outer_stride, taps;

  std::int64_t row(std::int64_t i) const { return i * row_stride; }
  std::int64_t inner(std::int64_t l) const { return l / taps * outer_stride + l % taps; }
  float at(std::int64_t row, std::int64_t inner) const {
    return static_cast<float>(T(data[row + inner]));
  }
};

// An output gradient DY(k, n p q).
template <typename T>
struct OutputGradient {
  const T* data;
  std::int64_t image_stride, pixels;

  std::int64_t row(std::int64_t k) const { return k * pixels; }
  std::int64_t inner(std::int64_t j) const { return j / pixels * image_stride + j % pixels; }
  float at(std::int64_t row, std::int64_t inner) const {
    return static_cast<float>(data[row + inner]);
  }
};

template <typename T>
void forward(const CpuContext& context, ConstView x, ConstView w, ConstView bias, View y,
             const Conv2dGeometry& geometry) {
  const Extents e(x.shape, w.shape, y.shape, geometry);
  const std::int64_t pixels = e.P * e.Q;
  for (std::int64_t group = 0; group < geometry.groups; ++group) {
    const std::int64_t k0 = group * e.K;
    const Weights<T> weights{w.as<float>() + k0 * e.C * e.taps, e.C * e.taps, e.taps, e.taps};
    const PositionRows<T> patches{input_patches(x.as<T>() + group * e.C * e.H * e.W, e, geometry)};
    multiply(context, e.K, e.N * pixels, e.C * e.taps, weights, patches,
             [&](std::int64_t k, std::int64_t j, float sum) {
               y.as<T>()[j / pixels * e.y_image + (k0 + k) * pixels + j % pixels] =
                   T(bias ? sum + bias.as<float>()[k0 + k] : sum);
             });
  }
}

template <typename T>
void backward_data(const CpuContext& context, ConstView dy, ConstView w, View dx,
                   const Conv2dGeometry& geometry) {
  const Extents e(dx.shape, w.shape, dy.shape, geometry);
  const std::int64_t pixels = e.H * e.W;
  for (std::int64_t group = 0; group < geometry.groups; ++group) {
    const std::int64_t c0 = group * e.C;
    const Weights<T> weights{w.as<float>() + group * e.K * e.C * e.taps, e.taps, e.C * e.taps,
                             e.taps};
    const PositionRows<T> patches{
        gradient_patches(dy.as<T>() + group * e.K * e.P * e.Q, e, geometry)};
    multiply(context, e.C, e.N * pixels, e.K * e.taps, weights, patches,
             [&](std::int64_t c, std::int64_t j, float sum) {
               dx.as<T>()[j / pixels * e.x_image + (c0 + c) * pixels + j % pixels] = T(sum);
             });
  }
}

void store(View gradient, std::int64_t i, float sum, bool accumulate) {
  float& target = gradient.as<float>()[i];
  target = accumulate ? target + sum : sum;
}

template <typename T>
void backward_weights(const CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                      bool accumulate, const Conv2dGeometry& geometry) {
  const Extents e(x.shape, dw.shape, dy.shape, geometry);
  const std::int64_t positions = e.N * e.P * e.Q;
  for (std::int64_t group = 0; group < geometry.groups; ++group) {
    const std::int64_t k0 = group * e.K;
    const OutputGradient<T> gradient{dy.as<T>() + k0 * e.P * e.Q, e.y_image, e.P * e.Q};
    const TapRows<T> patches{input_patches(x.as<T>() + group * e.C * e.H * e.W, e, geometry)};
    multiply(context, e.K, e.C * e.taps, positions, gradient, patches,
             [&](std::int64_t k, std::int64_t l, float sum) {
               store(dw, (k0 + k) * e.C * e.taps + l, sum, accumulate);
             });
    if (!dbias) continue;
    for (std::int64_t k = 0; k < e.K; ++k) {
      double sum = 0.0;
      for (std::int64_t j = 0; j < positions; ++j) {
        sum += static_cast<double>(gradient.at(gradient.row(k), gradient.inner(j)));
      }
      store(dbias, k0 + k, static_cast<float>(sum), accumulate);
    }
  }
}

}  // namespace

Conv2dLayouts conv2d_layouts(const CpuContext&, const Shape&, const Shape&, const Conv2dGeometry&) {
  return {Layout::plain, Layout::plain};
}

void conv2d_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y,
                    const Conv2dGeometry& geometry) {
  dispatch_float(x.dtype, [&]<typename T>(std::type_identity<T>) {
    forward<T>(context, x, w.master, bias, y, geometry);
  });
}

void conv2d_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx,
                          const Conv2dGeometry& geometry) {
  dispatch_float(dy.dtype, [&]<typename T>(std::type_identity<T>) {
    backward_data<T>(context, dy, w.master, dx, geometry);
  });
}

void conv2d_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate, const Conv2dGeometry& geometry) {
  if (!dw) return reference::conv2d_backward_weights(x, dy, dw, dbias, accumulate, geometry);
  dispatch_float(x.dtype, [&]<typename T>(std::type_identity<T>) {
    backward_weights<T>(context, x, dy, dw, dbias, accumulate, geometry);
  });
}

}  // namespace collar::kernels
