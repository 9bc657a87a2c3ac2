// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "engine/ops/ops.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;

TEST_CASE("A context that is being measured counts time by the kind of operation") {
  collar::test::OnCpu on;
  const Tensor x = on.random({2, 8, 16, 16}, 1);
  relu(x);  // before: not counted
  KernelTimes times;
  on.cpu().count_times_in(&times);
  const Tensor w = on.leaf(on.random({8, 8, 3, 3}, 2));
  sum(max_pool2d(conv2d(x, w, {}), {.kernel = {2, 2}, .stride = {2, 2}})).backward();
  on.cpu().count_times_in(nullptr);
  const auto counted = times.seconds();
  for (const char* kind : {"conv", "pool", "reduce"}) {
    INFO(kind);
    REQUIRE(counted.contains(kind));
    CHECK(counted.at(kind) > 0);
  }
  CHECK_FALSE(counted.contains("norm"));
  relu(x);  // afterwards: not counted
  CHECK(times.seconds() == counted);
}
