// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/pool.hpp"

#include "engine/ops/dispatch.hpp"
#include "engine/ops/unary.hpp"

namespace collar {
namespace {

using autograd::Saved;
using ops::require;

void check_input(const char* op, const Tensor& x) {
  require(x.rank() == 4 && x.size(2) > 0 && x.size(3) > 0, op,
          "input has shape {}, expected [N, C, H, W]", to_string(x.shape()));
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op,
          "input has type {}, expected f32 or bf16", name_of(x.dtype()));
}

Shape checked_output_shape(const char* op, const Tensor& x, const Pool2dOptions& options) {
  check_input(op, x);
  return kernels::pool2d_output_shape(x.shape(), options);
}

}  // namespace

MaxPoolResult max_pool2d_with_index(const Tensor& x, const Pool2dOptions& options) {
  constexpr const char* op = "max_pool2d";
  const Shape shape = checked_output_shape(op, x, options);
  DeviceContext& context = ops::context_of(op, {&x});
  MaxPoolResult result{Tensor::empty(shape, x.dtype(), &context, x.layout()),
                       Tensor::empty(shape, DType::i32, &context, x.layout())};
  ops::on(context, [&](auto& device) {
    kernels::max_pool2d_forward(device, x.view(), result.values.view(), result.index.view(),
                                options);
  });
  result.values = ops::record_unary(
      op, result.values, x,
      [options, index = Saved(result.index)](auto& device, ConstView dy, View dx) {
        kernels::max_pool2d_backward(device, dy, index.get().view(), dx, options);
      });
  return result;
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr const char* op = "max_pool2d";
  if (autograd::wants_grad({&x})) return max_pool2d_with_index(x, options).values;
  const Shape shape = checked_output_shape(op, x, options);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty(shape, x.dtype(), &context, x.layout());
  ops::on(context, [&](auto& device) {
    kernels::max_pool2d_forward(device, x.view(), y.view(), View{}, options);
  });
  return y;
}

Tensor avg_pool2d(const Tensor& x, Pool2dOptions options) {
  constexpr const char* op = "avg_pool2d";
  options.dilation = {1, 1};
  const Shape shape = checked_output_shape(op, x, options);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty(shape, x.dtype(), &context, x.layout());
  ops::on(context,
          [&](auto& device) { kernels::avg_pool2d_forward(device, x.view(), y.view(), options); });
  return ops::record_unary(op, y, x, [options](auto& device, ConstView dy, View dx) {
    kernels::avg_pool2d_backward(device, dy, dx, options);
  });
}

Tensor global_avg_pool(const Tensor& x) {
  constexpr const char* op = "global_avg_pool";
  check_input(op, x);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty({x.size(0), x.size(1)}, x.dtype(), &context);
  ops::on(context,
          [&](auto& device) { kernels::global_avg_pool_forward(device, x.view(), y.view()); });
  return ops::record_unary(op, y, x, [](auto& device, ConstView dy, View dx) {
    kernels::global_avg_pool_backward(device, dy, dx);
  });
}

}  // namespace collar
