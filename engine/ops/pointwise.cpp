// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/pointwise.hpp"

#include <algorithm>
#include <vector>

#include "engine/autograd/node.hpp"
#include "engine/ops/broadcast.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"
#include "engine/ops/unary.hpp"

namespace collar {
namespace {

using autograd::BackwardCall;
using autograd::Saved;
using kernels::BinaryOp;
using ops::require;

void check_floats(const char* op, const Tensor& x) {
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op, "{}: expected f32 or bf16",
          describe(x));
}

Tensor product_like(const Tensor& a, const Tensor& b, const Shape& shape) {
  return ops::sum_to_shape(ops::binary(BinaryOp::multiply, a, b), shape);
}

Tensor binary_op(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b) {
  check_floats(op, a);
  check_floats(op, b);
  require(a.dtype() == b.dtype(), op, "{} and {} have different types", describe(a), describe(b));
  Tensor y = ops::binary(kind, a, b);
  const bool product = kind == BinaryOp::multiply;
  return autograd::record(
      op, y, {a, b},
      [kind, a_shape = a.shape(), b_shape = b.shape(), saved_a = product ? Saved(a) : Saved(),
       saved_b = product ? Saved(b) : Saved()](BackwardCall& call) {
        const Tensor& dy = call.dy();
        if (kind == BinaryOp::multiply) {
          if (call.needs(0)) call.give(0, product_like(dy, saved_b.get(), a_shape));
          if (call.needs(1)) call.give(1, product_like(dy, saved_a.get(), b_shape));
          return;
        }
        if (call.needs(0)) call.give(0, ops::sum_to_shape(dy, a_shape));
        if (call.needs(1)) {
          const Tensor db = ops::sum_to_shape(dy, b_shape);
          call.give(1, kind == BinaryOp::subtract ? ops::scaled(db, -1) : db);
        }
      });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return binary_op("add", BinaryOp::add, a, b);
}
Tensor sub(const Tensor& a, const Tensor& b) {
  return binary_op("sub", BinaryOp::subtract, a, b);
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return binary_op("mul", BinaryOp::multiply, a, b);
}

Tensor mul(const Tensor& x, double factor) {
  constexpr const char* op = "mul";
  check_floats(op, x);
  return autograd::record(op, ops::scaled(x, factor), {x}, [factor](BackwardCall& call) {
    call.give(0, ops::scaled(call.dy(), factor));
  });
}

Tensor relu(const Tensor& x) {
  constexpr const char* op = "relu";
  check_floats(op, x);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty(x.shape(), x.dtype(), &context, x.layout());
  Tensor mask;
  if (autograd::wants_grad({&x})) mask = Tensor::empty({(x.numel() + 7) / 8}, DType::u8, &context);
  ops::on(context, [&](auto& device) {
    kernels::relu_forward(device, x.view(), y.view(), mask.defined() ? mask.view() : View{});
  });
  return ops::record_unary(op, y, x,
                           [saved_mask = Saved(mask)](auto& device, ConstView dy, View dx) {
                             kernels::relu_backward(device, dy, saved_mask.get().view(), dx);
                           });
}

Tensor dropout(const Tensor& x, double p, const DropoutKey& key) {
  constexpr const char* op = "dropout";
  check_floats(op, x);
  if (!(p >= 0 && p <= 1)) throw UsageError(fmt::format("dropout: p is {}, expected 0 to 1", p));
  DeviceContext& context = ops::context_of(op, {&x});
  const auto drop = [p, key](auto& device, ConstView in, View out) {
    kernels::dropout(device, in, out, p, key);
  };
  Tensor y = Tensor::empty(x.shape(), x.dtype(), &context, x.layout());
  ops::on(context, [&](auto& device) { drop(device, x.view(), y.view()); });
  return ops::record_unary(op, y, x, drop);
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents) {
  constexpr const char* op = "reshape";
  std::vector<std::int64_t> wanted(extents);
  const auto open = std::find(wanted.begin(), wanted.end(), -1);
  if (open != wanted.end()) {
    std::int64_t known = 1;
    for (const std::int64_t extent : wanted) known *= extent == -1 ? 1 : extent;
    require(known > 0 && x.numel() % known == 0, op,
            "{} elements cannot be divided into rows of {}", x.numel(), known);
    *open = x.numel() / known;
  }
  const Tensor plain = converted(x, Layout::plain);
  return autograd::record(
      op, plain.viewed_as(Shape(wanted)), {x},
      [shape = x.shape()](BackwardCall& call) { call.give(0, call.dy().viewed_as(shape)); });
}

Tensor flatten(const Tensor& x, int start) {
  require(start >= 0 && start < std::max(1, x.rank()), "flatten",
          "dimension {} of {} does not exist", start, describe(x));
  std::vector<std::int64_t> extents(x.shape().extents().begin(),
                                    x.shape().extents().begin() + start);
  extents.push_back(1);
  for (int i = start; i < x.rank(); ++i) extents.back() *= x.size(i);
  const Tensor plain = converted(x, Layout::plain);
  return autograd::record(
      "flatten", plain.viewed_as(Shape(extents)), {x},
      [shape = x.shape()](BackwardCall& call) { call.give(0, call.dy().viewed_as(shape)); });
}

}  // namespace collar
