// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/schedule.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "kernels/core/error.hpp"
#include "nn/optim/adam.hpp"
#include "nn/schedule/one_cycle.hpp"
#include "nn/schedule/warmup.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

Parameters parameter(const char* name) {
  return {{name, Tensor::zeros({1})}};
}

}  // namespace

TEST_CASE("A schedule moves every group by the same factor of its own rate") {
  AdamW optimizer(
      {{parameter("a"), {.lr = 0.4}}, {parameter("b"), {.lr = 0.04, .weight_decay = 0}}});
  CosineWithWarmup schedule(optimizer, {.warmup_steps = 4, .total_steps = 12});
  CHECK(optimizer.learning_rates() == std::vector<double>{0, 0});
  schedule.step();
  CHECK(schedule.learning_rates() == std::vector<double>{0.1, 0.01});
  for (int i = 0; i < 3; ++i) schedule.step();
  CHECK(optimizer.learning_rates() == std::vector<double>{0.4, 0.04});
  CHECK(schedule.position() == 4);
}

TEST_CASE("A schedule continues from its state, whatever the optimizer's rates are by then") {
  AdamW optimizer(parameter("a"), {.lr = 0.3});
  LinearWithWarmup schedule(optimizer, {.warmup_steps = 3, .total_steps = 9});
  for (int i = 0; i < 5; ++i) schedule.step();
  const double rate = optimizer.learning_rates().front();

  AdamW other(parameter("a"), {.lr = 17});
  LinearWithWarmup resumed(other, {.warmup_steps = 3, .total_steps = 9});
  resumed.load_state(schedule.state());
  CHECK(other.learning_rates().front() == rate);
  schedule.step();
  resumed.step();
  CHECK(other.learning_rates() == optimizer.learning_rates());
}

TEST_CASE("A state that cannot be this schedule's is refused, and changes nothing") {
  AdamW optimizer(parameter("a"), {.lr = 0.3});
  OneCycleLR schedule(optimizer, {.total_steps = 10});
  const double rate = optimizer.learning_rates().front();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ScheduleState> wrong{{},
                                         {{"position", {2}}},
                                         {{"position", {2}}, {"base_rates", {0.1, 0.2}}},
                                         {{"position", {2}}, {"base_rates", {nan}}},
                                         {{"position", {}}, {"base_rates", {0.1}}},
                                         {{"position", {nan}}, {"base_rates", {0.1}}},
                                         {{"position", {1e300}}, {"base_rates", {0.1}}},
                                         {{"position", {-1}}, {"base_rates", {0.1}}},
                                         {{"position", {1.5}}, {"base_rates", {0.1}}},
                                         {{"position", {11}}, {"base_rates", {0.1}}}};
  for (const ScheduleState& state : wrong) {
    CHECK_THROWS_AS(schedule.load_state(state), FileError);
    CHECK(schedule.position() == 0);
    schedule.set_position(0);
    CHECK(optimizer.learning_rates().front() == rate);
  }
  CHECK_THROWS_WITH(schedule.load_state(wrong.back()), Catch::Contains("from 0 to 10"));
}

TEST_CASE("A driver decides what step() does") {
  AdamW optimizer(parameter("a"), {.lr = 1});
  ConstantWithWarmup schedule(optimizer, {.warmup_steps = 10});
  bool last_micro_batch = false;
  schedule.set_driver([&](Schedule& driven) {  // two ranks' ticks, at the end of a step only
    if (last_micro_batch) driven.set_position(driven.position() + 2);
  });
  schedule.step();
  CHECK(schedule.position() == 0);
  last_micro_batch = true;
  schedule.step();
  CHECK(schedule.position() == 2);
  CHECK(optimizer.learning_rates().front() == 0.2);
}
