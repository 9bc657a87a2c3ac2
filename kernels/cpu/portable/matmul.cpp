// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.hpp"

#include "kernels/conv.hpp"

// A fully connected layer is a 1 x 1 convolution of images of one pixel.
namespace collar::kernels {
namespace {

template <typename AnyView>
AnyView as_image(AnyView matrix) {
  if (!matrix) return matrix;
  matrix.shape = {matrix.shape[0], matrix.shape[1], 1, 1};
  return matrix;
}

Weight as_kernel(Weight w) {
  w.master = as_image(w.master);
  return w;
}

}  // namespace

void linear_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y) {
  conv2d_forward(context, as_image(x), as_kernel(w), bias, as_image(y), {});
}

void linear_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx) {
  conv2d_backward_data(context, as_image(dy), as_kernel(w), as_image(dx), {});
}

void linear_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate) {
  conv2d_backward_weights(context, as_image(x), as_image(dy), as_image(dw), dbias, accumulate, {});
}

}  // namespace collar::kernels
