// SPDX-License-Identifier: Apache-2.0
#include "data/sampler/epoch_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"

using namespace collar;

TEST_CASE("An epoch's order is torch's randperm under seed + epoch, or Collar's own, or none") {
  using data::ShuffleOrder;
  const std::vector<std::int64_t> torch42{2, 6, 1, 8, 4, 5, 0, 9, 3, 7};
  const std::vector<std::int64_t> torch43{8, 4, 9, 0, 5, 1, 6, 7, 2, 3};
  CHECK(data::epoch_order(10, ShuffleOrder::torch, 42, 0) == torch42);
  CHECK(data::epoch_order(10, ShuffleOrder::torch, 42, 1) == torch43);
  CHECK(data::epoch_order(3, ShuffleOrder::sequential, 42, 1) ==
        std::vector<std::int64_t>{0, 1, 2});
  CHECK(data::epoch_order(0, ShuffleOrder::torch, 42, 0).empty());

  auto philox = data::epoch_order(100, ShuffleOrder::philox, 1, 2);
  CHECK(philox == data::epoch_order(100, ShuffleOrder::philox, 1, 2));
  CHECK(philox != data::epoch_order(100, ShuffleOrder::philox, 1, 3));
  CHECK(philox != data::epoch_order(100, ShuffleOrder::philox, 2, 2));
  std::ranges::sort(philox);
  CHECK(philox == data::epoch_order(100, ShuffleOrder::sequential, 0, 0));
  CHECK_THROWS_AS(data::epoch_order(5, ShuffleOrder::torch, 0, -1), UsageError);
}
