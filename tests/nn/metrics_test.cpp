// SPDX-License-Identifier: Apache-2.0
#include "nn/metrics.hpp"

#include <catch2/catch.hpp>

#include "engine/ops/layout.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using namespace collar::nn;

TEST_CASE("Accuracy counts labels among the first logits") {
  collar::test::OnCpu on;
  const Tensor logits =
      on.tensor({.1f, .9f, .3f, .2f, .5f, .4f, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1}, {3, 6});
  Accuracy accuracy;
  accuracy.add(logits, on.labels({1, 5, 5}));  // first; last; last of equal ones
  CHECK(accuracy.samples == 3);
  CHECK(accuracy.top1() == Approx(100.0 / 3));
  CHECK(accuracy.top5() == Approx(100.0 / 3));
  accuracy.add(logits, on.labels({0, 1, 4}));  // sixth; second; fifth of equal ones
  CHECK(accuracy.top1() == Approx(100.0 / 6));
  CHECK(accuracy.top5() == Approx(100.0 * 3 / 6));
}

TEST_CASE("With fewer than five classes every sample is among the first five") {
  collar::test::OnCpu on;
  Accuracy accuracy;
  accuracy.add(on.tensor({1, 2, 3, 4}, {1, 4}), on.labels({0}));
  CHECK(accuracy.top1() == 0);
  CHECK(accuracy.top5() == 100);
  CHECK(Accuracy().top1() == 0);
}

TEST_CASE("Labels that do not fit the logits are refused") {
  collar::test::OnCpu on;
  CHECK_THROWS_AS(count_top_k(on.tensor({1, 2}, {1, 2}), on.labels({0, 1}), 1), ShapeError);
  const Tensor doubles = cast(on.tensor({1, 2}, {1, 2}), DType::f64);
  CHECK_THROWS_WITH(count_top_k(doubles, on.labels({0}), 1), Catch::Contains("f32 or bf16"));
}

TEST_CASE("An average is weighted, and 0 before its first value") {
  Average average;
  CHECK(average.value() == 0);
  average.add(1, 3);
  average.add(5);
  CHECK(average.value() == 2);
  CHECK(average.weight() == 4);
}
