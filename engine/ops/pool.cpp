// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/pool.hpp"

#include "engine/autograd/node.hpp"
#include "engine/ops/dispatch.hpp"

namespace collar {
namespace {

using autograd::BackwardCall;
using autograd::Saved;
using ops::require;

void check_input(const char* op, const Tensor& x) {
  require(x.rank() == 4 && x.size(2) > 0 && x.size(3) > 0, op,
          "input has shape {}, expected [N, C, H, W]", to_string(x.shape()));
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op,
          "input has type {}, expected f32 or bf16", name_of(x.dtype()));
}

void check_window(const char* op, const Tensor& x, const Pool2dOptions& o) {
  check_input(op, x);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const int dimension = static_cast<int>(axis) + 2;
    require(o.kernel[axis] >= 1 && o.stride[axis] >= 1 && o.dilation[axis] >= 1, op,
            "kernel {}, stride {} and dilation {} must be at least 1", o.kernel[axis],
            o.stride[axis], o.dilation[axis]);
    require(o.padding[axis] >= 0 && 2 * o.padding[axis] <= o.kernel[axis], op,
            "padding {} must be between 0 and half the kernel size {}", o.padding[axis],
            o.kernel[axis]);
    require(
        x.size(dimension) + 2 * o.padding[axis] >= o.dilation[axis] * (o.kernel[axis] - 1) + 1 ||
            o.ceil_mode,
        op, "a window of {} does not fit into an input of {} with padding {}", o.kernel[axis],
        x.size(dimension), o.padding[axis]);
  }
}

}  // namespace

MaxPoolResult max_pool2d_with_index(const Tensor& x, const Pool2dOptions& options) {
  constexpr const char* op = "max_pool2d";
  check_window(op, x, options);
  DeviceContext& context = ops::context_of(op, {&x});
  const Shape shape = kernels::pool2d_output_shape(x.shape(), options);
  MaxPoolResult result{Tensor::empty(shape, x.dtype(), &context, x.layout()),
                       Tensor::empty(shape, DType::i32, &context, x.layout())};
  ops::on(context, [&](auto& device) {
    kernels::max_pool2d_forward(device, x.view(), result.values.view(), result.index.view(),
                                options);
  });
  result.values =
      autograd::record(op, result.values, {x},
                       [&context, options, index = Saved(result.index), input = x.shape(),
                        dtype = x.dtype(), layout = x.layout()](BackwardCall& call) {
                         Tensor dx = Tensor::empty(input, dtype, &context, layout);
                         ops::on(context, [&](auto& device) {
                           kernels::max_pool2d_backward(device, call.dy().view(),
                                                        index.get().view(), dx.view(), options);
                         });
                         call.give(0, std::move(dx));
                       });
  return result;
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  if (autograd::wants_grad({&x})) return max_pool2d_with_index(x, options).values;
  check_window("max_pool2d", x, options);
  DeviceContext& context = ops::context_of("max_pool2d", {&x});
  Tensor y = Tensor::empty(kernels::pool2d_output_shape(x.shape(), options), x.dtype(), &context,
                           x.layout());
  ops::on(context, [&](auto& device) {
    kernels::max_pool2d_forward(device, x.view(), y.view(), View{}, options);
  });
  return y;
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr const char* op = "avg_pool2d";
  check_window(op, x, options);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty(kernels::pool2d_output_shape(x.shape(), options), x.dtype(), &context,
                           x.layout());
  ops::on(context,
          [&](auto& device) { kernels::avg_pool2d_forward(device, x.view(), y.view(), options); });
  return autograd::record(op, y, {x},
                          [&context, options, input = x.shape(), dtype = x.dtype(),
                           layout = x.layout()](BackwardCall& call) {
                            Tensor dx = Tensor::empty(input, dtype, &context, layout);
                            ops::on(context, [&](auto& device) {
                              kernels::avg_pool2d_backward(device, call.dy().view(), dx.view(),
                                                           options);
                            });
                            call.give(0, std::move(dx));
                          });
}

Tensor global_avg_pool(const Tensor& x) {
  constexpr const char* op = "global_avg_pool";
  check_input(op, x);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty({x.size(0), x.size(1)}, x.dtype(), &context);
  ops::on(context,
          [&](auto& device) { kernels::global_avg_pool_forward(device, x.view(), y.view()); });
  return autograd::record(
      op, y, {x},
      [&context, input = x.shape(), dtype = x.dtype(), layout = x.layout()](BackwardCall& call) {
        Tensor dx = Tensor::empty(input, dtype, &context, layout);
        ops::on(context, [&](auto& device) {
          kernels::global_avg_pool_backward(device, call.dy().view(), dx.view());
        });
        call.give(0, std::move(dx));
      });
}

}  // namespace collar
