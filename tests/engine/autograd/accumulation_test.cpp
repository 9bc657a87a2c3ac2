// SPDX-License-Identifier: Apache-2.0
// Where two contributions to one gradient meet: in a leaf over passes, in a node within one.
#include <catch2/catch.hpp>

#include <vector>

#include "engine/autograd/node.hpp"
#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using collar::test::OnCpu;
using collar::test::values_of;

namespace {

constexpr DType kFloatingTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

}  // namespace

TEST_CASE("Gradients of every floating type accumulate over passes") {
  OnCpu cpu;
  const Tensor ones = Tensor::full({1001}, 1, DType::f32, &cpu.context());
  for (const DType dtype : kFloatingTypes) {
    INFO(name_of(dtype));
    Tensor w = cpu.leaf(Tensor::full({1001}, 1, dtype, &cpu.context()));
    for (int pass = 0; pass < 2; ++pass) sum(mul(cast(w, DType::f32), mul(ones, 1.5))).backward();
    CHECK(w.grad().dtype() == dtype);
    CHECK(values_of(w.grad()) == std::vector<double>(1001, 3.0));
  }
}

TEST_CASE("Gradients of every floating type meet where a result is used twice") {
  OnCpu cpu;
  for (const DType dtype : kFloatingTypes) {
    INFO(name_of(dtype));
    const Tensor w = cpu.leaf(Tensor::full({1001}, 1, DType::f32, &cpu.context()));
    const Tensor shared = cast(relu(w), dtype);
    const Tensor once = sum(cast(shared, DType::f32));
    add(once, sum(mul(cast(shared, DType::f32), 2.5))).backward();
    CHECK(values_of(w.grad()) == std::vector<double>(1001, 3.5));
  }
}

TEST_CASE("A gradient that changes in place has a new version") {
  OnCpu cpu;
  Tensor w = cpu.leaf(cpu.tensor({1, 2}, {1, 2}));
  const Tensor x = cpu.tensor({3, 4}, {1, 2});
  const auto moves = [&](const auto& pass) {
    pass();
    const auto before = w.grad().version();
    pass();
    return w.grad().version() > before;
  };
  CHECK(moves([&] { sum(mul(w, x)).backward(); }));               // added by the engine
  CHECK(moves([&] { sum(linear(x, w, Tensor())).backward(); }));  // written by a kernel
}

TEST_CASE("A pass that throws leaves nothing behind for the next one") {
  OnCpu cpu;
  const Tensor w = cpu.leaf(cpu.tensor({1}, {1}));
  const Tensor broken = cpu.leaf(cpu.tensor({1}, {1}));
  const Tensor shared = mul(w, 2.0);
  const auto fail = [](autograd::BackwardCall& call) {
    call.target(0);
    throw NumericsError("out of luck");
  };
  const Tensor failing = autograd::record("failing", cpu.tensor({1}, {1}), {broken}, fail);
  // Backwards, the gradient of `shared` has arrived and waits when `failing` throws.
  CHECK_THROWS_AS(sum(add(shared, failing)).backward(), NumericsError);
  CHECK_FALSE(broken.grad().defined());
  sum(mul(shared, 3.0)).backward();
  CHECK(w.grad().item() == 6.0);
}
