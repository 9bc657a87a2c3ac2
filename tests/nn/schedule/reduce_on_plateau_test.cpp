// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/reduce_on_plateau.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "kernels/core/error.hpp"
#include "tests/nn/schedule/golden_schedules.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

PlateauOptions options_from(const nlohmann::json& a) {
  PlateauOptions options;
  if (a.value("mode", "min") == "max") options.mode = PlateauOptions::Mode::max;
  if (a.value("threshold_mode", "rel") == "abs") {
    options.threshold_mode = PlateauOptions::Threshold::absolute;
  }
  options.factor = a.value("factor", 0.1);
  options.patience = a.value("patience", std::int64_t{10});
  options.threshold = a.value("threshold", 1e-4);
  options.cooldown = a.value("cooldown", std::int64_t{0});
  options.min_rate = a.value("min_lr", 0.0);
  options.epsilon = a.value("eps", 1e-8);
  return options;
}

double metric_from(const nlohmann::json& value) {
  return value.is_string() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

TEST_CASE("Reducing on a plateau is torch's, also when stopped and resumed half way") {
  REQUIRE_SHARED(path, "golden/schedules/torch.json");
  int compared = 0;
  const auto file = collar::test::read_json(path);
  for (const auto& golden : file["cases"]) {
    if (golden["class"] != "ReduceLROnPlateau") continue;
    INFO(golden["arguments"]);
    const PlateauOptions options = options_from(golden["arguments"]);
    SGD optimizer(nn::test::one_parameter(), {.lr = 0.1});
    ReduceLROnPlateau schedule(optimizer, options);
    for (std::size_t i = 0; i < golden["metrics"].size(); ++i) {
      if (i == golden["metrics"].size() / 2) {
        ReduceLROnPlateau resumed(optimizer, options);
        resumed.load_state(schedule.state());
        schedule.load_state(resumed.state());
      }
      schedule.step(metric_from(golden["metrics"][i]));
      INFO("epoch " << i);
      CHECK(optimizer.learning_rates().front() == golden["values"][i].get<double>());
      CHECK(schedule.bad_epochs() == golden["num_bad_epochs"][i].get<std::int64_t>());
      CHECK(schedule.cooldown_left() == golden["cooldown_counter"][i].get<std::int64_t>());
    }
    ++compared;
  }
  CHECK(compared == 6);
}

TEST_CASE("A state that cannot be a plateau schedule's is refused, and changes nothing") {
  SGD optimizer(nn::test::one_parameter(), {.lr = 0.1});
  ReduceLROnPlateau schedule(optimizer);
  const ScheduleState state = schedule.state();
  const std::pair<const char*, std::vector<double>> wrong[] = {
      {"best", {}}, {"bad_epochs", {1e300}}, {"cooldown_left", {-1}}, {"rates", {1, 2}}};
  for (const auto& [name, values] : wrong) {
    ScheduleState damaged = state;
    damaged[name] = values;
    CHECK_THROWS_WITH(schedule.load_state(damaged), Catch::Contains(name));
    CHECK(schedule.state() == state);
  }
}

TEST_CASE("A plateau schedule that would not reduce is refused") {
  SGD optimizer(nn::test::one_parameter(), {.lr = 0.1});
  CHECK_THROWS_AS(ReduceLROnPlateau(optimizer, {.factor = 1.0}), UsageError);
}
