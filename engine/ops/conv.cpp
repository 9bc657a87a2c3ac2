// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/conv.hpp"

#include "engine/autograd/node.hpp"
#include "engine/ops/affine.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"
#include "kernels/matmul.hpp"

namespace collar {
namespace {

using autograd::BackwardCall;
using autograd::Saved;
using ops::require;

void check_activation(const char* op, const Tensor& x) {
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op,
          "input has type {}, expected f32 or bf16", name_of(x.dtype()));
}

void check_weight(const char* op, const Tensor& weight, const Tensor& bias) {
  require(weight.dtype() == DType::f32 && weight.layout() == Layout::plain, op,
          "the weight is {}, expected plain f32", describe(weight));
  require(!bias.defined() || (bias.dtype() == DType::f32 && bias.shape() == Shape{weight.size(0)}),
          op, "the bias is {}, expected f32 [{}]", describe(bias), weight.size(0));
}

void check_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Conv2dOptions& o) {
  constexpr const char* op = "conv2d";
  check_activation(op, x);
  require(x.rank() == 4, op, "input has shape {}, expected [N, C, H, W]", to_string(x.shape()));
  require(weight.rank() == 4, op, "weight has shape {}, expected [K, C/groups, R, S]",
          to_string(weight.shape()));
  check_weight(op, weight, bias);
  require(o.groups >= 1 && x.size(1) % o.groups == 0 && weight.size(0) % o.groups == 0, op,
          "{} input and {} output channels cannot be split into {} groups", x.size(1),
          weight.size(0), o.groups);
  require(x.size(1) == weight.size(1) * o.groups, op, "input has {} channels, weight expects {}",
          x.size(1), weight.size(1) * o.groups);
}

// Records y = f(x, weight) + bias, where x is `input` in the layout that the kernels read.
// backward_data(device, dy, weight, dx) and backward_weights(device, x, dy, dw, dbias, accumulate)
// are the kernels.
template <typename BackwardData, typename BackwardWeights>
Tensor record_affine(const char* op, Tensor y, const Tensor& input, const Tensor& x,
                     const Tensor& weight, const Tensor& bias, BackwardData backward_data,
                     BackwardWeights backward_weights) {
  if (!autograd::wants_grad({&input, &weight, &bias})) return y;
  return autograd::record(
      op, std::move(y), {input, weight, bias},
      [context = x.context(), shape = x.shape(), dtype = x.dtype(), layout = x.layout(),
       saved_x = weight.requires_grad() ? Saved(x) : Saved(),
       saved_weight = input.requires_grad() ? Saved(weight) : Saved(), backward_data,
       backward_weights](BackwardCall& call) {
        const ConstView dy = call.dy().view();
        if (call.needs(0)) {
          Tensor dx = Tensor::empty(shape, dtype, context, layout);
          ops::on(*context, [&](auto& device) {
            backward_data(device, dy, saved_weight.get().as_weight(), dx.view());
          });
          call.give(0, std::move(dx));
        }
        if (call.needs(1) || call.needs(2)) {
          const ops::AffineTargets targets = ops::affine_targets(call, *context, 1, 2);
          const ConstView x_view = ops::optional_view(saved_x.get());
          ops::on(*context, [&](auto& device) {
            backward_weights(device, x_view, dy, targets.weight, targets.bias, targets.accumulate);
          });
        }
      });
}

}  // namespace

Tensor conv2d(const Tensor& x_any, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  check_conv2d(x_any, weight, bias, options);
  DeviceContext& context = ops::context_of("conv2d", {&x_any, &weight, &bias});
  const Shape shape = kernels::conv2d_output_shape(x_any.shape(), weight.shape(), options);
  const kernels::Conv2dLayouts layouts = ops::on(context, [&](auto& device) {
    return kernels::conv2d_layouts(device, x_any.shape(), weight.shape(), options);
  });
  const Tensor x = converted(x_any, layouts.x);
  Tensor y = Tensor::empty(shape, x.dtype(), &context, layouts.y);
  ops::on(context, [&](auto& device) {
    kernels::conv2d_forward(device, x.view(), weight.as_weight(), ops::optional_view(bias),
                            y.view(), options);
  });
  return record_affine(
      "conv2d", y, x_any, x, weight, bias,
      [options](auto& device, ConstView dy, const Weight& w, View dx) {
        kernels::conv2d_backward_data(device, dy, w, dx, options);
      },
      [options](auto& device, ConstView x_view, ConstView dy, View dw, View dbias,
                bool accumulate) {
        kernels::conv2d_backward_weights(device, x_view, dy, dw, dbias, accumulate, options);
      });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  constexpr const char* op = "linear";
  check_activation(op, x);
  require(x.rank() == 2 && weight.rank() == 2, op, "input {} and weight {} must have rank 2",
          to_string(x.shape()), to_string(weight.shape()));
  require(x.size(1) == weight.size(1), op, "input has {} features, weight expects {}", x.size(1),
          weight.size(1));
  check_weight(op, weight, bias);
  DeviceContext& context = ops::context_of(op, {&x, &weight, &bias});
  Tensor y = Tensor::empty({x.size(0), weight.size(0)}, x.dtype(), &context);
  ops::on(context, [&](auto& device) {
    kernels::linear_forward(device, x.view(), weight.as_weight(), ops::optional_view(bias),
                            y.view());
  });
  return record_affine(
      op, y, x, x, weight, bias,
      [](auto& device, ConstView dy, const Weight& w, View dx) {
        kernels::linear_backward_data(device, dy, w, dx);
      },
      [](auto& device, ConstView x_view, ConstView dy, View dw, View dbias, bool accumulate) {
        kernels::linear_backward_weights(device, x_view, dy, dw, dbias, accumulate);
      });
}

}  // namespace collar
