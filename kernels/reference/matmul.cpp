// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/matmul.hpp"

#include "kernels/reference/conv.hpp"

// A fully connected layer is a 1 x 1 convolution of images of one pixel, definition for definition.
namespace collar::kernels::reference {
namespace {

template <typename AnyView>
AnyView as_image(AnyView matrix) {
  if (!matrix) return matrix;
  matrix.shape = {matrix.shape[0], matrix.shape[1], 1, 1};
  return matrix;
}

}  // namespace

void linear_forward(ConstView x, ConstView w, ConstView bias, View y) {
  conv2d_forward(as_image(x), as_image(w), bias, as_image(y), {});
}

void linear_backward_data(ConstView dy, ConstView w, View dx) {
  conv2d_backward_data(as_image(dy), as_image(w), as_image(dx), {});
}

void linear_backward_weights(ConstView x, ConstView dy, View dw, View dbias, bool accumulate) {
  conv2d_backward_weights(as_image(x), as_image(dy), as_image(dw), dbias, accumulate, {});
}

}  // namespace collar::kernels::reference
