// SPDX-License-Identifier: Apache-2.0
#include "data/loader/epoch_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

using namespace collar;
using data::EpochPlan;
using data::Sharding;

namespace {

using Turns = std::vector<std::pair<int, std::int64_t>>;

/// 0, 10, 20, …: so that a sample is not its position.
std::vector<std::int64_t> tens(std::int64_t samples) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < samples; ++i) order.push_back(10 * i);
  return order;
}

Turns turns_of(const EpochPlan& plan) {
  Turns turns;
  for (std::int64_t i = 0; i < plan.size(); ++i) {
    turns.emplace_back(plan.entry(i).rank, plan.entry(i).index);
  }
  return turns;
}

}  // namespace

TEST_CASE("Ranks take turns: each has the micro-batches of a step, fewer at the end") {
  const Sharding sharding{.samples = 11, .batch_size = 1, .ranks = 4};  // 3 batches for each rank
  const EpochPlan plan(tens(11), sharding, {.ranks = 4, .own = {2, 3}, .micro_batches_per_step = 2},
                       0);
  CHECK(turns_of(plan) == Turns{{2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 2}, {3, 2}});
  CHECK(plan.samples(0) == std::vector<std::int64_t>{20});
  CHECK(plan.samples(3) == std::vector<std::int64_t>{70});
  CHECK(plan.samples(5) == std::vector<std::int64_t>{0});  // the twelfth is the first again
  CHECK(plan.entry(4).valid == 1);
  CHECK(plan.entry(5).valid == 0);
  for (std::int64_t i = 0; i < plan.size(); ++i) CHECK(plan.entry(i).last == (i >= 4));
}

TEST_CASE("A plan that skips batches is the end of the whole plan") {
  const Sharding sharding{.samples = 37, .batch_size = 3, .ranks = 2};
  const data::LoaderShare share{.ranks = 2, .own = {0, 1}, .micro_batches_per_step = 2};
  const EpochPlan whole(tens(37), sharding, share, 0);
  for (std::int64_t skip = 0; skip <= sharding.batches(0); skip += 2) {
    const std::int64_t skipped = std::min(skip, sharding.batches(0)) * 2;
    const EpochPlan rest(tens(37), sharding, share, skip);
    REQUIRE(rest.size() == whole.size() - skipped);
    for (std::int64_t i = 0; i < rest.size(); ++i) {
      CHECK(rest.samples(i) == whole.samples(skipped + i));
      CHECK(rest.entry(i).last == whole.entry(skipped + i).last);
    }
  }
}

TEST_CASE("Ranks with fewer batches leave their last turns out") {
  const Sharding sharding{.samples = 5, .batch_size = 2, .ranks = 2, .even_batches = false};
  const EpochPlan plan(tens(5), sharding, {.ranks = 2, .own = {0, 1}}, 0);
  CHECK(turns_of(plan) == Turns{{0, 0}, {1, 0}, {0, 1}});
  CHECK(plan.entry(1).last);
  CHECK(plan.entry(2).last);
  CHECK(plan.samples(2) == std::vector<std::int64_t>{40});
  CHECK(EpochPlan({}, {.samples = 0}, {}, 0).size() == 0);
}
