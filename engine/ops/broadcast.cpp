// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/broadcast.hpp"

#include <algorithm>
#include <vector>

#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"
#include "kernels/reduce.hpp"

namespace collar::ops {
namespace {

// The shape with extents of 1 in front, up to `rank`.
Shape padded(const Shape& shape, int rank) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  std::copy(shape.extents().begin(), shape.extents().end(), extents.end() - shape.rank());
  return Shape(extents);
}

}  // namespace

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  const Shape left = padded(a, rank);
  const Shape right = padded(b, rank);
  std::vector<std::int64_t> extents;
  for (int i = 0; i < rank; ++i) {
    require(left[i] == right[i] || left[i] == 1 || right[i] == 1, "broadcast",
            "shapes {} and {} do not fit together", to_string(a), to_string(b));
    extents.push_back(left[i] == 1 ? right[i] : left[i]);
  }
  return Shape(extents);
}

Tensor binary(kernels::BinaryOp op, const Tensor& a, const Tensor& b) {
  DeviceContext& context = context_of("binary", {&a, &b});
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  const bool same = a.shape() == b.shape();
  const Tensor left = same ? a : converted(a, Layout::plain);
  const Tensor right = converted(b, same ? a.layout() : Layout::plain);
  Tensor y = Tensor::empty(shape, a.dtype(), &context, left.layout());
  ConstView left_view = left.view();
  ConstView right_view = right.view();
  left_view.shape = padded(left.shape(), shape.rank());
  right_view.shape = padded(right.shape(), shape.rank());
  on(context, [&](auto& device) { kernels::binary(device, op, left_view, right_view, y.view()); });
  return y;
}

Tensor sum_to_shape(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  DeviceContext& context = context_of("sum", {&x});
  const Tensor plain = converted(x, Layout::plain);
  Tensor y = Tensor::empty(shape, x.dtype(), &context);
  View y_view = y.view();
  y_view.shape = padded(shape, x.rank());
  on(context, [&](auto& device) { kernels::sum_to(device, plain.view(), y_view, 1.0); });
  return y;
}

Tensor scaled(const Tensor& x, double factor) {
  DeviceContext& context = context_of("scale", {&x});
  Tensor y = Tensor::empty(x.shape(), x.dtype(), &context, x.layout());
  on(context,
     [&](auto& device) { kernels::scale(device, x.view(), y.view(), static_cast<float>(factor)); });
  return y;
}

Tensor expanded(const Tensor& x, const Shape& shape) {
  const Tensor one = Tensor::full(padded({}, shape.rank()), 1, x.dtype(), x.context());
  const Tensor plain = converted(x, Layout::plain);
  Tensor y = Tensor::empty(shape, x.dtype(), x.context());
  ConstView x_view = plain.view();
  x_view.shape = padded(x.shape(), shape.rank());
  on(*x.context(), [&](auto& device) {
    kernels::binary(device, kernels::BinaryOp::multiply, x_view, one.view(), y.view());
  });
  return y;
}

}  // namespace collar::ops
