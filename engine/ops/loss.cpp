// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/loss.hpp"

#include "engine/autograd/node.hpp"
#include "engine/ops/broadcast.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/unary.hpp"

namespace collar {
namespace {

using autograd::BackwardCall;
using autograd::Saved;
using ops::require;

void check_rows(const char* op, const Tensor& x) {
  require(x.rank() == 2 && (x.dtype() == DType::f32 || x.dtype() == DType::bf16), op,
          "{}: expected f32 or bf16 [N, C]", describe(x));
}

// softmax and log_softmax differ only in their kernels.
template <typename Forward, typename Backward>
Tensor row_op(const char* op, const Tensor& x, Forward forward, Backward backward) {
  check_rows(op, x);
  DeviceContext& context = ops::context_of(op, {&x});
  Tensor y = Tensor::empty(x.shape(), x.dtype(), &context);
  ops::on(context, [&](auto& device) { forward(device, x.view(), y.view()); });
  return ops::record_unary(op, y, x,
                           [backward, saved_y = Saved(y)](auto& device, ConstView dy, View dx) {
                             backward(device, saved_y.get().view(), dy, dx);
                           });
}

void check_target(const Tensor& logits, const Tensor& target, std::int64_t ignore_index) {
  constexpr const char* op = "cross_entropy";
  const bool indices = target.dtype() == DType::i64 && target.shape() == Shape{logits.size(0)};
  const bool probabilities = target.dtype() == DType::f32 && target.shape() == logits.shape();
  require(indices || probabilities, op,
          "the target is {}; for logits {} expected i64 [{}] or f32 {}", describe(target),
          to_string(logits.shape()), logits.size(0), to_string(logits.shape()));
  if (!indices || target.device().kind != Device::Kind::cpu) return;
  const std::int64_t* classes = target.data<std::int64_t>();
  for (std::int64_t row = 0; row < target.numel(); ++row) {
    require(classes[row] == ignore_index || (classes[row] >= 0 && classes[row] < logits.size(1)),
            op, "target {} of row {} is not a class: there are {}", classes[row], row,
            logits.size(1));
  }
}

}  // namespace

Tensor softmax(const Tensor& x) {
  return row_op(
      "softmax", x,
      [](auto& device, ConstView in, View out) { kernels::softmax_forward(device, in, out); },
      [](auto& device, ConstView y, ConstView dy, View dx) {
        kernels::softmax_backward(device, y, dy, dx);
      });
}

Tensor log_softmax(const Tensor& x) {
  return row_op(
      "log_softmax", x,
      [](auto& device, ConstView in, View out) { kernels::log_softmax_forward(device, in, out); },
      [](auto& device, ConstView y, ConstView dy, View dx) {
        kernels::log_softmax_backward(device, y, dy, dx);
      });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  constexpr const char* op = "cross_entropy";
  check_rows(op, logits);
  check_target(logits, target, options.ignore_index);
  require(
      !options.weight.defined() ||
          (options.weight.dtype() == DType::f32 && options.weight.shape() == Shape{logits.size(1)}),
      op, "the class weights are {}, expected f32 [{}]", describe(options.weight), logits.size(1));
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw UsageError(fmt::format("cross_entropy: label_smoothing is {}, expected 0 to 1",
                                 options.label_smoothing));
  }
  DeviceContext& context = ops::context_of(op, {&logits, &target, &options.weight});
  const bool none = options.reduction == Reduction::none;
  Tensor loss = Tensor::empty(none ? Shape{logits.size(0)} : Shape{}, DType::f32, &context);
  Tensor gradient;
  if (autograd::wants_grad({&logits}))
    gradient = Tensor::empty(logits.shape(), DType::f32, &context);
  ops::on(context, [&](auto& device) {
    kernels::CrossEntropy args;
    args.logits = logits.view();
    args.target = target.view();
    args.weight = ops::optional_view(options.weight);
    args.ignore_index = options.ignore_index;
    args.label_smoothing = options.label_smoothing;
    args.reduction = options.reduction;
    args.loss = loss.view();
    if (gradient.defined()) args.gradient = gradient.view();
    kernels::cross_entropy(device, args);
  });
  return autograd::record(
      op, loss, {logits},
      [none, rows = logits.size(0), saved = Saved(gradient)](BackwardCall& call) {
        const Tensor upstream = call.dy().viewed_as(none ? Shape{rows, 1} : Shape{1, 1});
        call.give(0, ops::binary(kernels::BinaryOp::multiply, saved.get(), upstream));
      });
}

}  // namespace collar
