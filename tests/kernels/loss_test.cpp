// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy against their definitions, and PyTorch's answers in the corners.
#include "kernels/loss.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/reference/loss.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using kernels::CrossEntropy;
using kernels::Reduction;
using test::Buffer;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The loss of one row of logits with target 0 or soft targets.
struct Small {
  explicit Small(std::vector<float> values)
      : logits({1, static_cast<std::int64_t>(values.size())}),
        gradient({1, static_cast<std::int64_t>(values.size())}),
        target({1}, DType::i64),
        loss(Shape{}) {
    std::copy(values.begin(), values.end(), logits.data());
    args.logits = logits.view();
    args.target = target.view();
    args.loss = loss.view();
    args.gradient = gradient.view();
  }
  float run() {
    CpuContext context;
    kernels::cross_entropy(context, args);
    return loss.data()[0];
  }

  Buffer logits, gradient, target, loss;
  CrossEntropy args;
};

}  // namespace

TEST_CASE("softmax, log-softmax and their gradients agree with their definitions") {
  CpuContext context({.threads = 2});
  for (const Shape& shape : {Shape{6, 37}, Shape{1, 1}, Shape{300, 130}, Shape{0, 5}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Buffer x(shape, dtype);
      Buffer dy(shape, dtype);
      x.randomize(1);
      dy.randomize(2);
      Buffer y(shape, dtype);
      Buffer dx(shape, dtype);
      Buffer exact(shape, dtype);
      Buffer exact_dx(shape, dtype);
      kernels::softmax_forward(context, x.view(), y.view());
      kernels::reference::softmax_forward(x.view(), exact.view());
      test::require_close(y.view(), exact.view(), 1);
      kernels::softmax_backward(context, exact.view(), dy.view(), dx.view());
      kernels::reference::softmax_backward(exact.view(), dy.view(), exact_dx.view());
      test::require_close(dx.view(), exact_dx.view(), 1);
      kernels::log_softmax_forward(context, x.view(), y.view());
      kernels::reference::log_softmax_forward(x.view(), exact.view());
      test::require_close(y.view(), exact.view(), 1);
      kernels::log_softmax_backward(context, exact.view(), dy.view(), dx.view());
      kernels::reference::log_softmax_backward(exact.view(), dy.view(), exact_dx.view());
      test::require_close(dx.view(), exact_dx.view(), 1);
    }
  }
}

TEST_CASE("cross-entropy agrees with its definition in every combination of options") {
  const Shape shape{64, 37};
  Buffer weight({37});
  weight.randomize(3);
  for (int c = 0; c < 37; ++c) weight.data()[c] += 1.5f;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Buffer logits(shape, dtype);
    logits.randomize(1);
    Buffer index({64}, DType::i64);
    Buffer soft(shape);
    soft.randomize(2);
    for (std::int64_t i = 0; i < 64; ++i) index.data<std::int64_t>()[i] = i * 7 % 37;
    index.data<std::int64_t>()[5] = -100;
    for (const bool is_soft : {false, true}) {
      for (const bool weighted : {false, true}) {
        for (const double smoothing : {0.0, 0.1, 1.0}) {
          for (const std::int64_t ignore : {-100, 3}) {
            for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
              if (!is_soft && ignore == 3) index.data<std::int64_t>()[5] = 4;
              if (!is_soft && ignore == -100) index.data<std::int64_t>()[5] = -100;
              const Shape loss_shape = reduction == Reduction::none ? Shape{64} : Shape{};
              Buffer loss(loss_shape);
              Buffer exact_loss(loss_shape);
              Buffer gradient(shape);
              Buffer exact_gradient(shape);
              CrossEntropy args;
              args.logits = logits.view();
              args.target = is_soft ? soft.view() : index.view();
              if (weighted) args.weight = weight.view();
              args.ignore_index = ignore;
              args.label_smoothing = smoothing;
              args.reduction = reduction;
              args.loss = loss.view();
              args.gradient = gradient.view();
              CrossEntropy wanted = args;
              wanted.loss = exact_loss.view();
              wanted.gradient = exact_gradient.view();
              CpuContext context({.threads = 2});
              kernels::cross_entropy(context, args);
              kernels::reference::cross_entropy(wanted);
              INFO(name_of(dtype) << " soft " << is_soft << " weighted " << weighted
                                  << " smoothing " << smoothing);
              test::require_close(loss.view(), exact_loss.view(), 1);
              test::require_close(gradient.view(), exact_gradient.view(), 1);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("when all targets are ignored the loss is NaN and the gradient zero") {
  Small small({1, 2, 3});
  small.target.data<std::int64_t>()[0] = -100;
  small.gradient.randomize(1);
  CHECK(std::isnan(small.run()));
  for (int c = 0; c < 3; ++c) CHECK(small.gradient.data()[c] == 0);
  small.args.reduction = Reduction::sum;
  CHECK(small.run() == 0);
}

TEST_CASE("logits of any size give a finite loss") {
  CHECK(Small({1e4f, 0, -1e4f}).run() == 0);
  CHECK(Small({-1e4f, 1e4f, 0}).run() == 2e4f);
  CHECK(Small({3e38f, 3e38f}).run() == Approx(std::log(2.0)));
  CHECK(Small({5}).run() == 0);
}

TEST_CASE("infinite logits do what PyTorch's do") {
  CHECK(Small({0, -kInf, 0}).run() == Approx(std::log(2.0)));
  CHECK(Small({-kInf, 0, 0}).run() == kInf);
  CHECK(std::isnan(Small({kInf, 0, 0}).run()));
  CHECK(std::isnan(Small({-kInf, -kInf}).run()));
  CHECK(std::isnan(Small({0, std::nanf("")}).run()));

  // Smoothing takes in every class; soft targets do even where they are zero.
  Small smoothed({0, -kInf, 0});
  smoothed.args.label_smoothing = 0.1;
  CHECK(smoothed.run() == kInf);
  Small soft({0, -kInf});
  Buffer probabilities({1, 2});
  probabilities.data()[0] = 1;
  soft.args.target = probabilities.view();
  CHECK(std::isnan(soft.run()));
}

TEST_CASE("log-softmax of infinite rows is NaN where PyTorch's is") {
  CpuContext context;
  Buffer x({3, 2});
  Buffer y({3, 2});
  const std::vector<float> rows{-kInf, -kInf, kInf, 0, -kInf, 0};
  std::copy(rows.begin(), rows.end(), x.data());
  kernels::log_softmax_forward(context, x.view(), y.view());
  for (int i = 0; i < 4; ++i) CHECK(std::isnan(y.data()[i]));
  CHECK(y.data()[4] == -kInf);
  CHECK(y.data()[5] == 0);
}
