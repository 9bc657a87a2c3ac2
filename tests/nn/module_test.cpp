// SPDX-License-Identifier: Apache-2.0
#include "nn/module.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "nn/batch_norm.hpp"
#include "nn/conv.hpp"
#include "nn/linear.hpp"
#include "nn/sequential.hpp"
#include "nn/stateless.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

/// A module as a user would write one.
class TinyNet final : public Module {
 public:
  TinyNet() : body_(add<Sequential>("body")), head_(add<Linear>("head", 8, 3)) {
    body_.append<Conv2d>(3, 8, 3, Conv2d::Options{.padding = 1, .bias = true});
    body_.append<BatchNorm2d>(8);
    body_.append<ReLU>();
    body_.append<MaxPool2d>(Pool2dOptions{});
    body_.append<GlobalAvgPool>();
  }
  Tensor forward(const Tensor& x) override { return head_(body_(x)); }
  Linear& head() { return head_; }

 private:
  Sequential& body_;
  Linear& head_;
};

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

}  // namespace

TEST_CASE("Names are paths, in the order of PyTorch's state_dict") {
  const TinyNet net;
  CHECK(names_of(net.state_dict()) ==
        std::vector<std::string>{"body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias",
                                 "body.1.running_mean", "body.1.running_var",
                                 "body.1.num_batches_tracked", "head.weight", "head.bias"});
  CHECK(names_of(net.named_parameters()) == std::vector<std::string>{"body.0.weight", "body.0.bias",
                                                                     "body.1.weight", "body.1.bias",
                                                                     "head.weight", "head.bias"});
  CHECK(names_of(net.named_buffers()) == std::vector<std::string>{"body.1.running_mean",
                                                                  "body.1.running_var",
                                                                  "body.1.num_batches_tracked"});
  CHECK(net.parameter_count() == 8 * 3 * 9 + 8 + 8 + 8 + 3 * 8 + 3);
}

TEST_CASE("Freezing all but a part leaves the part's parameters trainable") {
  TinyNet net;
  CHECK(net.trainable_parameters().size() == 6);
  net.freeze_all_but(net.head());
  CHECK(names_of(net.trainable_parameters()) ==
        std::vector<std::string>{"head.weight", "head.bias"});
  net.unfreeze();
  CHECK(net.trainable_parameters().size() == 6);
  net.freeze();
  CHECK(net.trainable_parameters().empty());

  const Linear stranger(8, 3);
  CHECK_THROWS_AS(net.freeze_all_but(stranger), UsageError);
}

TEST_CASE("Handles taken before a model moves to its device move with it") {
  collar::test::OnCpu on;
  TinyNet net;
  const Parameters before = net.named_parameters();
  net.to(on.context());
  for (const Parameter& parameter : before) CHECK(parameter.tensor.context() == &on.context());
  for (const Parameter& buffer : net.named_buffers()) {
    const bool counter = buffer.name.ends_with("num_batches_tracked");
    CHECK((buffer.tensor.context() == nullptr) == counter);
  }
}

TEST_CASE("A model of modules computes, trains and counts its batches") {
  collar::test::OnCpu on;
  TinyNet net;
  net.initialize(1);
  net.to(on.context());
  const Tensor x = on.random({4, 3, 6, 6}, 2);
  const Tensor y = net(x);
  CHECK(y.shape() == Shape{4, 3});
  sum(mul(y, y)).backward();
  for (const Parameter& parameter : net.named_parameters()) {
    INFO(parameter.name);
    CHECK(parameter.tensor.grad().defined());
  }
  CHECK(net.named_buffers()[2].tensor.item() == 1);
  net.eval();
  CHECK_FALSE(net.head().training());
  net(x);
  CHECK(net.named_buffers()[2].tensor.item() == 1);
}

TEST_CASE("A model of any kind computes in the type it is told, and gives f32") {
  collar::test::OnCpu on;
  Sequential net;
  net.append<Conv2d>(3, 8, 3, Conv2d::Options{.padding = 1, .bias = true});
  net.append<BatchNorm2d>(8);
  auto& activation = net.append<ReLU>();
  net.append<GlobalAvgPool>();
  net.append<Linear>(8, 3);
  net.initialize(1);
  net.to(on.context());
  DType inside = DType::u8;
  activation.set_forward_hook([&](const Tensor&, const Tensor& y) { inside = y.dtype(); });
  const Tensor x = on.random({4, 3, 6, 6}, 2);
  const auto run = [&](DType type) {
    net.set_compute_type(type);
    const Tensor y = net(x);
    CHECK(inside == type);
    CHECK(y.dtype() == DType::f32);
    for (Parameter parameter : net.named_parameters()) parameter.tensor.zero_grad();
    sum(mul(y, y)).backward();
    for (const Parameter& parameter : net.named_parameters()) {
      CHECK(parameter.tensor.dtype() == DType::f32);
      CHECK(parameter.tensor.grad().dtype() == DType::f32);
    }
    return collar::test::values_of(y);
  };
  const auto exact = run(DType::f32);
  const auto rounded = run(DType::bf16);
  CHECK(rounded != exact);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(rounded[i] == Approx(exact[i]).margin(0.02));
  }
}

TEST_CASE("A forward hook sees what a module is given and what it returns") {
  collar::test::OnCpu on;
  Conv2d layer(3, 4, 3);
  layer.to(on.context());
  std::vector<Shape> seen;
  layer.set_forward_hook([&](const Tensor& x, const Tensor& y) {
    seen.push_back(x.shape());
    seen.push_back(y.shape());
  });
  layer(on.random({2, 3, 5, 5}, 1));
  CHECK(seen == std::vector<Shape>{{2, 3, 5, 5}, {2, 4, 3, 3}});
  layer.set_forward_hook(nullptr);
  layer(on.random({2, 3, 5, 5}, 1));
  CHECK(seen.size() == 2);
}

TEST_CASE("Groups that do not divide the channels are refused") {
  CHECK_THROWS_AS(Conv2d(6, 8, 3, {.groups = 4}), UsageError);
}
