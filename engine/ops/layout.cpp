// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/layout.hpp"

#include "engine/autograd/node.hpp"
#include "engine/ops/dispatch.hpp"
#include "kernels/cast.hpp"

namespace collar {

Tensor converted(const Tensor& x, Layout layout, DType dtype) {
  if (x.layout() == layout && x.dtype() == dtype) return x;
  DeviceContext& context = ops::context_of("convert", {&x});
  Tensor y = Tensor::empty(x.shape(), dtype, &context, layout);
  ops::on(context, [&](auto& device) {
    if (x.layout() == layout) {
      kernels::cast(device, x.view(), y.view());
    } else {
      kernels::convert_layout(device, x.view(), y.view());
    }
  });
  return y;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const DType original = x.dtype();
  Tensor y = converted(x, x.layout(), dtype);
  if (!is_floating(dtype)) return y;
  return autograd::record("cast", y, {x}, [original](autograd::BackwardCall& call) {
    call.give(0, converted(call.dy(), call.dy().layout(), original));
  });
}

}  // namespace collar
