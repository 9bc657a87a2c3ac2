// SPDX-License-Identifier: Apache-2.0
#include "engine/tensor.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/ops/layout.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::test::OnCpu;

TEST_CASE("A tensor made on the host is bound to nothing until it is moved") {
  OnCpu cpu;
  const Tensor host = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(host.context() == nullptr);
  CHECK(describe(host) == "f32 [2, 3] on the host");
  const Tensor bound = host.to(cpu.context());
  CHECK(describe(bound) == "f32 [2, 3] on cpu");
  CHECK(bound.data<float>() == host.data<float>());  // the CPU shares the host's memory
}

TEST_CASE("Slices and other shapes share bytes and version") {
  Tensor tensor = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {3, 2});
  Tensor rows = tensor.slice(1, 3);
  CHECK(rows.to_vector<float>() == std::vector<float>{2, 3, 4, 5});
  CHECK(tensor.viewed_as({2, 3}).slice(1, 2).to_vector<float>() == std::vector<float>{3, 4, 5});
  const auto version = tensor.version();
  rows.copy_from(Tensor::from<float>({9, 9, 9, 9}, {2, 2}));
  CHECK(tensor.to_vector<float>() == std::vector<float>{0, 1, 9, 9, 9, 9});
  CHECK(tensor.version() == version + 1);
  CHECK_THROWS_AS(tensor.slice(2, 4), ShapeError);
  CHECK_THROWS_AS(tensor.viewed_as({4}), ShapeError);
}

TEST_CASE("A clone has bytes of its own") {
  Tensor tensor = Tensor::from<float>({1, 2}, {2});
  Tensor copy = tensor.clone();
  copy.data<float>()[0] = 7;
  CHECK(tensor.data<float>()[0] == 1);
}

TEST_CASE("rehome moves every handle into an arena, with a version of its own") {
  OnCpu cpu;
  Tensor parameter = cpu.tensor({1, 2, 3}, {3});
  const Tensor other_handle = parameter;
  Tensor arena = Tensor::zeros({8}, DType::f32, &cpu.context());
  parameter.rehome(arena.slice(4, 7));
  CHECK(arena.to_vector<float>() == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 0});
  arena.data<float>()[5] = 9;
  CHECK(other_handle.to_vector<float>() == std::vector<float>{1, 9, 3});
  const auto version = parameter.version();
  arena.changed_in_place();
  CHECK(parameter.version() == version);
  CHECK_THROWS_AS(parameter.rehome(arena.slice(0, 2)), ShapeError);
}

TEST_CASE("Types are checked, shapes are checked, and the message has the numbers") {
  const Tensor tensor = Tensor::from<std::int64_t>({1, 2}, {2});
  CHECK_THROWS_WITH(tensor.data<float>(), Contains("i64 [2] on the host read as f32"));
  CHECK_THROWS_WITH(tensor.item(), Contains("exactly one"));
  CHECK_THROWS_WITH((Tensor::from<float>({1, 2, 3}, {2})),
                    Contains("3 values do not fill the shape [2]"));
  CHECK_THROWS_AS(Tensor().shape(), ShapeError);
  CHECK_THROWS_AS(Shape({1, -1}), ShapeError);
  CHECK_THROWS_AS(Shape({1LL << 40, 1LL << 40}), ShapeError);
}

TEST_CASE("Tensors may be empty") {
  const Tensor tensor = Tensor::zeros({0, 5});
  CHECK(tensor.numel() == 0);
  CHECK(tensor.to_vector<float>().empty());
  CHECK(tensor.slice(0, 0).numel() == 0);
}

TEST_CASE("Layouts change where the bytes lie, not what they are") {
  OnCpu cpu;
  const Tensor plain = cpu.random({2, 16, 3, 5}, 1);
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    const Tensor other = converted(plain, layout);
    CHECK(other.layout() == layout);
    CHECK(other.to_vector<float>() == plain.to_vector<float>());
    CHECK(converted(other, Layout::plain).to_vector<float>() == plain.to_vector<float>());
  }
  CHECK_THROWS_AS(Tensor::empty({2, 12, 3, 5}, DType::f32, nullptr, Layout::blocked8), ShapeError);
}

TEST_CASE("The allocator hands freed blocks out again") {
  OnCpu cpu;
  const auto statistics = [&] { return cpu.cpu().allocator().statistics(); };
  { const Tensor tensor = Tensor::empty({1000}, DType::f32, &cpu.context()); }
  const auto before = statistics();
  for (int i = 0; i < 10; ++i) {
    const Tensor tensor = Tensor::empty({1000}, DType::f32, &cpu.context());
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data<float>()) % CachingAllocator::kAlignment ==
          0);
  }
  CHECK(statistics().system_allocations == before.system_allocations);
  CHECK(statistics().bytes_in_use == before.bytes_in_use);
}

TEST_CASE("Too much memory is an error with sizes, not a crash") {
  OnCpu cpu;
  CHECK_THROWS_AS(Tensor::empty({1LL << 50}, DType::f32, &cpu.context()), DeviceError);
  CHECK_THROWS_AS(Tensor::empty({1LL << 62}, DType::f32, &cpu.context()), ShapeError);
  CHECK_THROWS_AS(Tensor::empty({1LL << 61}, DType::f32, &cpu.context()), ShapeError);
  CHECK_THROWS_AS(Tensor::empty({(1LL << 62) - 1}, DType::f32), ShapeError);
  CHECK_THROWS_AS(Tensor::empty({(1LL << 61) - 64}, DType::f32, &cpu.context()), DeviceError);
}

TEST_CASE("A tensor may outlive the Runtime that gave it its memory") {
  Tensor tensor;
  {
    OnCpu cpu;
    tensor = Tensor::full({1 << 20}, 5, DType::f32, &cpu.context());
  }
  CHECK(tensor.data<float>()[(1 << 20) - 1] == 5);
}
