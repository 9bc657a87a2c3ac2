// SPDX-License-Identifier: Apache-2.0
// What operations say to arguments that do not fit.
#include <catch2/catch.hpp>

#include <cstdint>

#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::test::OnCpu;

TEST_CASE("conv2d names what does not fit") {
  OnCpu cpu;
  const Tensor x = cpu.random({1, 3, 8, 8}, 1);
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 64, 3, 3}, 2), {}),
                    Contains("input has 3 channels, weight expects 64"));
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 3, 9, 9}, 2), {}),
                    Contains("window of 9 does not fit"));
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 3, 3}, 2), {}),
                    Contains("weight has shape [4, 3, 3]"));
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 3, 3, 3}, 2), cpu.random({5}, 3)),
                    Contains("expected f32 [4]"));
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 1, 3, 3}, 2), {}, {{1, 1}, {0, 0}, {1, 1}, 2}),
                    Contains("2 groups"));
  CHECK_THROWS_WITH(conv2d(x, cpu.random({4, 3, 3, 3}, 2), {}, {{0, 1}, {0, 0}, {1, 1}, 1}),
                    Contains("stride 0"));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const Conv2dOptions& options : {Conv2dOptions{{1, 1}, {0, kHuge}, {1, 1}, 1},
                                       Conv2dOptions{{1, 1}, {0, 0}, {kHuge, 1}, 1}}) {
    CHECK_THROWS_AS(conv2d(x, cpu.random({4, 3, 3, 3}, 2), {}, options), ShapeError);
  }
}

TEST_CASE("An operation on a tensor of the host says how to move it") {
  OnCpu cpu;
  const Tensor host = Tensor::from<float>({1, 2}, {2});
  CHECK_THROWS_WITH(relu(host), Contains("to(runtime.context())"));
  OnCpu other;
  CHECK_THROWS_WITH(add(cpu.random({2}, 1), other.random({2}, 1)), Contains("different contexts"));
}

TEST_CASE("Shapes that do not broadcast are refused") {
  OnCpu cpu;
  CHECK_THROWS_WITH(add(cpu.random({2, 3}, 1), cpu.random({2}, 2)), Contains("[2, 3] and [2]"));
}

TEST_CASE("batch_norm refuses one value a channel in training, as torch does") {
  OnCpu cpu;
  CHECK_THROWS_WITH(batch_norm(cpu.random({1, 4, 1, 1}, 1), {}),
                    Contains("more than 1 value per channel"));
  // With an exchange it is the group that counts.
  StatisticsExchange exchange;
  double group = 1;
  exchange.merge_moments = [&](View, View, double) { return group; };
  BatchNormOptions together;
  together.exchange = &exchange;
  CHECK_THROWS_WITH(batch_norm(cpu.random({1, 4, 1, 1}, 1), {}, together),
                    Contains("more than 1 value per channel"));
  group = 2;
  CHECK_NOTHROW(batch_norm(cpu.random({1, 4, 1, 1}, 1), {}, together));
  BatchNormOptions evaluation;
  evaluation.training = false;
  CHECK_THROWS_WITH(batch_norm(cpu.random({2, 4}, 1), {}, evaluation),
                    Contains("running statistics"));
}

TEST_CASE("cross_entropy names the row with a class that does not exist") {
  OnCpu cpu;
  const Tensor logits = cpu.random({3, 4}, 1);
  CHECK_THROWS_WITH(cross_entropy(logits, cpu.labels({0, 4, 1})), Contains("target 4 of row 1"));
  CHECK_THROWS_WITH(cross_entropy(logits, cpu.labels({0, 1})), Contains("expected i64 [3]"));
  CrossEntropyOptions options;
  options.label_smoothing = 1.5;
  CHECK_THROWS_AS(cross_entropy(logits, cpu.labels({0, 1, 2}), options), UsageError);
}

TEST_CASE("Pooling checks its window") {
  OnCpu cpu;
  const Tensor x = cpu.random({1, 3, 4, 4}, 1);
  CHECK_THROWS_AS(max_pool2d(x, {{2, 2}, {2, 2}, {2, 2}, {1, 1}, false, true}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {{5, 5}, {2, 2}, {0, 0}, {1, 1}, false, true}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {{2, 2}, {0, 1}, {0, 0}, {1, 1}, false, true}), ShapeError);
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK_THROWS_AS(max_pool2d(x, {{kHuge, 2}, {2, 2}, {kHuge / 2, 0}, {1, 1}, false, true}),
                  ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {{5, 5}, {2, 2}, {0, 0}, {kHuge, 1}, true, true}), ShapeError);
  CHECK_THROWS_AS(global_avg_pool(cpu.random({2, 3}, 1)), ShapeError);
}

TEST_CASE("reshape and reductions check their arguments") {
  OnCpu cpu;
  const Tensor x = cpu.random({2, 3}, 1);
  CHECK_THROWS_AS(reshape(x, {4, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {7}), ShapeError);
  CHECK_THROWS_AS(sum(x, {2}), ShapeError);
  CHECK_THROWS_AS(sum(x, {0, 0}), ShapeError);
  CHECK_THROWS_AS(dropout(x, 1.5, {}), UsageError);
}
