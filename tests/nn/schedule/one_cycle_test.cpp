// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/one_cycle.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "kernels/core/error.hpp"
#include "tests/nn/schedule/golden_schedules.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;
using nn::test::agrees;

namespace {

OneCycleOptions options_from(const nlohmann::json& a) {
  OneCycleOptions options{.max_rate = a["max_lr"].get<double>()};
  options.total_steps = a.contains("total_steps") ? a["total_steps"].get<std::int64_t>()
                                                  : a["epochs"].get<std::int64_t>() *
                                                        a["steps_per_epoch"].get<std::int64_t>();
  options.rising_part = a.value("pct_start", 0.3);
  if (a.value("anneal_strategy", "cos") == "linear") {
    options.anneal = OneCycleOptions::Anneal::linear;
  }
  options.cycle_momentum = a.value("cycle_momentum", true);
  options.base_momentum = a.value("base_momentum", 0.85);
  options.max_momentum = a.value("max_momentum", 0.95);
  options.div_factor = a.value("div_factor", 25.0);
  options.final_div_factor = a.value("final_div_factor", 1e4);
  options.three_phase = a.value("three_phase", false);
  return options;
}

}  // namespace

TEST_CASE("One cycle is torch's: rates, momenta and the end") {
  REQUIRE_SHARED(path, "golden/schedules/torch.json");
  int compared = 0;
  const auto file = collar::test::read_json(path);
  for (const auto& golden : file["cases"]) {
    if (golden["class"] != "OneCycleLR") continue;
    INFO(golden["arguments"]);
    const OneCycleOptions options = options_from(golden["arguments"]);
    SGD optimizer(nn::test::one_parameter(), {.lr = 0.0012, .momentum = 0.9});
    OneCycleLR schedule(optimizer, options);

    const auto rates = golden["lr"]["values"].get<std::vector<double>>();
    for (std::size_t step = 0; step < rates.size(); ++step) {
      INFO("step " << step);
      CHECK(agrees(schedule.learning_rates().front(), rates[step], *options.max_rate));
      if (step + 1 < rates.size()) schedule.step();
    }
    CHECK(schedule.position() == *schedule.last_position());
    CHECK_THROWS_AS(schedule.step(), UsageError);
    CHECK(schedule.position() == options.total_steps);

    const char* moved = golden["optimizer"] == "adam" ? "beta1" : "momentum";
    const auto momenta = golden[moved]["values"].get<std::vector<double>>();
    for (std::size_t step = 0; step < momenta.size() && options.cycle_momentum; ++step) {
      CHECK(agrees(one_cycle_momentum(options, static_cast<std::int64_t>(step)), momenta[step], 1));
    }
    ++compared;
  }
  CHECK(compared == 8);
}

TEST_CASE("One cycle whose phases have no length is refused, where torch divides by zero") {
  SGD optimizer(nn::test::one_parameter(), {.lr = 0.1, .momentum = 0.9});
  const auto make = [&](std::int64_t total, double rising, bool three_phase) {
    OneCycleLR(optimizer,
               {.total_steps = total, .rising_part = rising, .three_phase = three_phase});
  };
  CHECK_THROWS_WITH(make(10, 0.1, false), Catch::Contains("0.1 of 10 steps"));
  CHECK_THROWS_AS(make(10, 0.1, true), UsageError);
  CHECK_THROWS_AS(make(2, 0.5, false), UsageError);
  CHECK_THROWS_AS(make(1, 1, false), UsageError);
  CHECK_THROWS_AS(make(10, 1, false), UsageError);    // torch: at the last step
  CHECK_THROWS_AS(make(10, 0.55, true), UsageError);  // likewise
  CHECK_THROWS_AS(make(0, 0.3, false), UsageError);
  CHECK_NOTHROW(make(1, 0.3, false));
  // A first phase of negative length is passed over, as in torch.
  CHECK(one_cycle_rate({.total_steps = 10, .rising_part = 0.05}, 0, 0.1) ==
        Approx(0.09931806789787544).epsilon(1e-14));
}

TEST_CASE("One cycle without a rate of its own takes each group's as the largest") {
  const OneCycleOptions options{.total_steps = 10};
  CHECK(one_cycle_rate(options, 2, 0.03) == Approx(0.03));
  CHECK(one_cycle_rate(options, 2, 0.3) == Approx(0.3));
}

TEST_CASE("Several steps at once end where the schedule does") {
  SGD one(nn::test::one_parameter(), {.lr = 0.1, .momentum = 0.9});
  SGD several(nn::test::one_parameter(), {.lr = 0.1, .momentum = 0.9});
  OneCycleLR slow(one, {.total_steps = 10});
  OneCycleLR fast(several, {.total_steps = 10});
  for (int i = 0; i < 4; ++i) slow.advance();
  fast.advance_by(4);
  CHECK(fast.position() == 4);
  CHECK(fast.learning_rates() == slow.learning_rates());
  fast.advance_by(100);
  CHECK(fast.position() == 10);
}
