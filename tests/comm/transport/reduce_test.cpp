// SPDX-License-Identifier: Apache-2.0
// The arithmetic under all reductions: order, types, special values.
#include "comm/transport/reduce.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "kernels/core/error.hpp"
#include "tests/comm/support/serial_reduction.hpp"

using namespace collar;
using namespace collar::comm;

namespace {

template <typename T>
std::vector<T> reduced(ReduceOp op, const std::vector<std::vector<T>>& inputs, double scale = 1) {
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<T> result(inputs[0].size());
  void* const destination = result.data();
  reduce_tree(dtype_of<T>, {op, scale}, sources, {&destination, 1}, result.size());
  return result;
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("The tree splits at the largest power of two below n") {
  CHECK(tree_split(2) == 1);
  CHECK(tree_split(3) == 2);
  CHECK(tree_split(4) == 2);
  CHECK(tree_split(5) == 4);
  CHECK(tree_split(8) == 4);
  CHECK(tree_split(9) == 8);
}

TEST_CASE("Any number of sources is added in the tree order") {
  for (std::size_t n = 1; n <= 17; ++n) {
    std::vector<std::vector<float>> inputs(n);
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < 2500; ++i)
        inputs[k].push_back(test::sample<float>(static_cast<int>(k), i, false));
    const std::vector<float> result = reduced(ReduceOp::sum, inputs, 1.0 / 3);
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::vector<float> values;
      for (const auto& input : inputs) values.push_back(input[i]);
      const float sum = test::serial_tree(ReduceOp::sum, std::span<const float>(values));
      REQUIRE(result[i] == sum * static_cast<float>(1.0 / 3));
    }
  }
}

TEST_CASE("The order matters, and it is the tree's") {
  // From left to right the ones are lost one by one; in the tree they meet first.
  const float big = 1 << 24;
  CHECK(reduced<float>(ReduceOp::sum, {{big}, {0}, {1}, {1}})[0] == big + 2);
  CHECK(((big + 0) + 1) + 1 == big);
}

TEST_CASE("Every destination gets the same bits, sources among them") {
  std::vector<float> a = {1, 2, 3}, b = {10, 20, 30}, c(3);
  const void* const sources[] = {a.data(), b.data()};
  void* const destinations[] = {a.data(), b.data(), c.data()};
  reduce_tree(DType::f32, {}, sources, destinations, 3);
  CHECK(a == std::vector<float>{11, 22, 33});
  CHECK(b == a);
  CHECK(c == a);
}

TEST_CASE("max and min let NaN win and hold -0 for less than +0") {
  CHECK(std::isnan(reduced<float>(ReduceOp::max, {{kNan}, {kInf}})[0]));
  CHECK(std::isnan(reduced<float>(ReduceOp::max, {{kInf}, {kNan}})[0]));
  CHECK(std::isnan(reduced<float>(ReduceOp::min, {{kNan}, {-kInf}})[0]));
  CHECK(std::isnan(reduced<float>(ReduceOp::min, {{-kInf}, {kNan}})[0]));
  for (const auto& [a, b] : {std::pair{0.0f, -0.0f}, std::pair{-0.0f, 0.0f}}) {
    CHECK_FALSE(std::signbit(reduced<float>(ReduceOp::max, {{a}, {b}})[0]));
    CHECK(std::signbit(reduced<float>(ReduceOp::min, {{a}, {b}})[0]));
  }
  CHECK(reduced<double>(ReduceOp::max, {{-1.5}, {-2.5}, {-0.5}})[0] == -0.5);
  CHECK(reduced<double>(ReduceOp::min, {{-1.5}, {-2.5}, {-0.5}})[0] == -2.5);
}

TEST_CASE("Integers wrap in their own type") {
  CHECK(reduced<std::uint8_t>(ReduceOp::sum, {{200}, {100}})[0] == 44);
  CHECK(reduced<std::int8_t>(ReduceOp::sum, {{100}, {100}})[0] == -56);
  CHECK(reduced<std::int32_t>(ReduceOp::sum, {{INT32_MAX}, {1}})[0] == INT32_MIN);
  CHECK(reduced<std::int64_t>(ReduceOp::product, {{INT64_MAX}, {2}})[0] == -2);
}

TEST_CASE("16-bit floats are added in f32 and rounded once") {
  // In bf16 256 + 1 is 256 again; in f32 the ones add up before the rounding.
  const std::vector<std::vector<bfloat16>> inputs = {
      {bfloat16(256.0f)}, {bfloat16(1.0f)}, {bfloat16(1.0f)}};
  CHECK(static_cast<float>(reduced(ReduceOp::sum, inputs)[0]) == 258.0f);
  const std::vector<std::vector<float16>> halves = {
      {float16(2048.0f)}, {float16(1.0f)}, {float16(1.0f)}};
  CHECK(static_cast<float>(reduced(ReduceOp::sum, halves)[0]) == 2050.0f);
  CHECK(static_cast<float>(reduced(ReduceOp::sum, halves, 0.5)[0]) == 1025.0f);
}

TEST_CASE("combine puts the travelling value on the left") {
  std::vector<float> mine = {kNan, 1, 2};
  const std::vector<float> incoming = {1, 2, 3};
  combine(DType::f32, {ReduceOp::sum, 0.5}, mine.data(), incoming.data(), 3);
  CHECK(std::isnan(mine[0]));
  CHECK(mine[1] == 1.5f);
  CHECK(mine[2] == 2.5f);
}

TEST_CASE("Booleans are not combined") {
  bool value = true;
  void* const destination = &value;
  const void* const sources[] = {&value, &value};
  CHECK_THROWS_AS(reduce_tree(DType::boolean, {}, sources, {&destination, 1}, 1), UsageError);
}
