// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "engine/autograd/node.hpp"
#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::test::OnCpu;

TEST_CASE("The gradient of a product is the other factor") {
  OnCpu cpu;
  const Tensor a = cpu.leaf(cpu.tensor({1, 2, 3}, {3}));
  const Tensor b = cpu.leaf(cpu.tensor({4, 5, 6}, {3}));
  sum(mul(a, b)).backward();
  CHECK(a.grad().to_vector<float>() == std::vector<float>{4, 5, 6});
  CHECK(b.grad().to_vector<float>() == std::vector<float>{1, 2, 3});
}

TEST_CASE("A leaf used twice gets the sum of both gradients, and its hook fires once") {
  OnCpu cpu;
  Tensor w = cpu.leaf(cpu.tensor({2, 3}, {2}));
  int fired = 0;
  w.set_grad_hook([&](const Tensor& leaf) {
    ++fired;
    CHECK(leaf.grad().to_vector<float>() == std::vector<float>{4, 6});
  });
  sum(mul(w, w)).backward();
  CHECK(fired == 1);
}

TEST_CASE("Hooks fire in reverse order of use, whatever the order of an operation's inputs") {
  OnCpu cpu;
  const Tensor x = cpu.tensor({1}, {1});
  std::vector<int> order;
  std::vector<Tensor> weights;
  Tensor y = x;
  for (int layer = 0; layer < 6; ++layer) {
    Tensor w = cpu.leaf(cpu.tensor({1}, {1}));
    w.set_grad_hook([&order, layer](const Tensor&) { order.push_back(layer); });
    y = layer % 2 == 0 ? mul(w, y) : mul(y, w);
    weights.push_back(w);
  }
  sum(y).backward();
  CHECK(order == std::vector<int>{5, 4, 3, 2, 1, 0});
}

TEST_CASE("Gradients accumulate over backward passes until zero_grad") {
  OnCpu cpu;
  Tensor w = cpu.leaf(cpu.tensor({1, 1}, {2}));
  const Tensor x = cpu.tensor({3, 4}, {2});
  sum(mul(w, x)).backward();
  sum(mul(w, x)).backward();
  CHECK(w.grad().to_vector<float>() == std::vector<float>{6, 8});
  w.zero_grad();
  CHECK_FALSE(w.grad().defined());
  sum(mul(w, x)).backward();
  CHECK(w.grad().to_vector<float>() == std::vector<float>{3, 4});
}

TEST_CASE("A gradient is written into the place it was given") {
  OnCpu cpu;
  Tensor arena = Tensor::full({16}, 99, DType::f32, &cpu.context());
  Tensor w = cpu.leaf(cpu.tensor({1, 2, 3, 4, 5, 6}, {2, 3}));
  w.set_grad_storage(arena.slice(4, 10).viewed_as({2, 3}));
  const Tensor x = cpu.tensor({1, 1, 1}, {1, 3});
  sum(linear(x, w, Tensor())).backward();
  const std::vector<float> expected{99, 99, 99, 99, 1, 1, 1, 1, 1, 1, 99, 99, 99, 99, 99, 99};
  CHECK(arena.to_vector<float>() == expected);
}

TEST_CASE("Nothing is recorded for constants or under NoGrad") {
  OnCpu cpu;
  const Tensor x = cpu.tensor({1, 2}, {2});
  CHECK_FALSE(mul(x, x).requires_grad());
  const Tensor w = cpu.leaf(cpu.tensor({1, 2}, {2}));
  {
    const NoGrad no_grad;
    CHECK_FALSE(mul(w, x).requires_grad());
  }
  CHECK(mul(w, x).requires_grad());
}

TEST_CASE("A second backward through one graph is refused") {
  OnCpu cpu;
  const Tensor w = cpu.leaf(cpu.tensor({1, 2}, {2}));
  const Tensor loss = sum(mul(w, w));
  loss.backward();
  CHECK_THROWS_WITH(loss.backward(), Contains("already been run"));
  const Tensor gradient = sum(w.grad());
  CHECK_THROWS_WITH(gradient.backward(), Contains("second derivatives"));
}

TEST_CASE("Two losses may share a part of the graph only within one backward") {
  OnCpu cpu;
  const Tensor w = cpu.leaf(cpu.tensor({3}, {1}));
  const Tensor shared = mul(w, w);
  const Tensor first = sum(shared);
  const Tensor second = sum(mul(shared, 2.0));
  add(first, second).backward();
  CHECK(w.grad().item() == 18.0);
  CHECK_THROWS_AS(first.backward(), AutogradError);
}

TEST_CASE("A change in place between forward and backward is noticed") {
  OnCpu cpu;
  Tensor w = cpu.leaf(cpu.tensor({1, 2}, {2}));
  const Tensor x = cpu.leaf(cpu.tensor({3, 4}, {2}));
  const Tensor loss = sum(mul(w, x));
  w.copy_from(cpu.tensor({5, 6}, {2}));
  CHECK_THROWS_WITH(loss.backward(), Contains("changed in place"));
}

TEST_CASE("A change through a view is noticed too") {
  OnCpu cpu;
  const Tensor w = cpu.leaf(cpu.tensor({1, 2, 3, 4}, {4}));
  const Tensor x = cpu.leaf(cpu.tensor({3, 4, 5, 6}, {4}));
  const Tensor loss = sum(mul(w, x));
  w.slice(1, 3).copy_from(cpu.tensor({0, 0}, {2}));
  CHECK_THROWS_AS(loss.backward(), AutogradError);
}

TEST_CASE("A graph a hundred thousand nodes deep runs and is freed without recursion") {
  OnCpu cpu(1);
  const Tensor w = cpu.leaf(cpu.tensor({1}, {1}));
  Tensor y = w;
  for (int i = 0; i < 100000; ++i) y = relu(y);
  SECTION("by running") {
    sum(y).backward();
    CHECK(w.grad().item() == 1.0);
  }
  SECTION("by being dropped") {
    y = Tensor();
  }
}

TEST_CASE("Backward starts from a scalar that requires a gradient") {
  OnCpu cpu;
  const Tensor w = cpu.leaf(cpu.tensor({1, 2}, {2}));
  CHECK_THROWS_WITH(mul(w, w).backward(), Contains("one number"));
  CHECK_THROWS_WITH(sum(cpu.tensor({1}, {1})).backward(), Contains("does not require a gradient"));
  CHECK_THROWS_WITH(cpu.leaf(cpu.tensor({1}, {1})).backward(), Contains("leaf"));
  CHECK_THROWS_AS(Tensor().backward(), AutogradError);
}

TEST_CASE("Only floating leaves can require a gradient") {
  OnCpu cpu;
  Tensor labels = cpu.labels({1, 2});
  CHECK_THROWS_AS(labels.set_requires_grad(true), AutogradError);
  const Tensor w = cpu.leaf(cpu.tensor({1, 2}, {2}));
  Tensor product = mul(w, w);
  CHECK_THROWS_AS(product.set_requires_grad(false), AutogradError);
}

TEST_CASE("The hook of a leaf whose branch got no gradient still fires") {
  OnCpu cpu;
  int fired = 0;
  Tensor w = cpu.leaf(cpu.tensor({1, 2, 3}, {3}));
  w.set_grad_hook([&](const Tensor& leaf) {
    ++fired;
    CHECK_FALSE(leaf.grad().defined());
  });
  // An operation between w and the loss that has no gradient to give.
  const Tensor silent =
      autograd::record("silent", cpu.tensor({1, 2, 3}, {3}), {mul(w, 2.0)}, [](auto&) {});
  sum(silent).backward();
  CHECK(fired == 1);
}
