// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/warmup.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "kernels/core/error.hpp"
#include "tests/nn/schedule/golden_schedules.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;
using nn::test::check_rates;

namespace {

std::int64_t integer(const nlohmann::json& arguments, const char* name) {
  return arguments.value(name, std::int64_t{0});
}

std::optional<double> optional_number(const nlohmann::json& arguments, const char* name) {
  return arguments.contains(name) ? std::optional<double>(arguments[name].get<double>())
                                  : std::nullopt;
}

rate::WarmupStableDecay::Shape shape_from(const std::string& name) {
  using Shape = rate::WarmupStableDecay::Shape;
  return name == "linear"   ? Shape::linear
         : name == "cosine" ? Shape::cosine
                            : Shape::one_minus_sqrt;
}

rate::WarmupStableDecay warmup_stable_decay(const nlohmann::json& a) {
  const std::int64_t warmup = integer(a, "num_warmup_steps");
  const std::int64_t decay = integer(a, "num_decay_steps");
  return {.warmup_steps = warmup,
          .stable_steps = a.contains("num_stable_steps")
                              ? integer(a, "num_stable_steps")
                              : integer(a, "num_training_steps") - warmup - decay,
          .decay_steps = decay,
          .warmup = shape_from(a.value("warmup_type", "linear")),
          .decay = shape_from(a.value("decay_type", "cosine")),
          .min_rate_ratio = a.value("min_lr_ratio", 0.0),
          .cycles = a.value("num_cycles", 0.5)};
}

/// The formula that a function of transformers.optimization stands for.
RateFormula formula_of(const std::string& function, const nlohmann::json& a) {
  const std::int64_t warmup = integer(a, "num_warmup_steps");
  const std::int64_t total = integer(a, "num_training_steps");
  if (function == "get_constant_schedule") return rate::Constant{};
  if (function == "get_constant_schedule_with_warmup") return rate::ConstantWithWarmup{warmup};
  if (function == "get_linear_schedule_with_warmup") return rate::LinearWithWarmup{warmup, total};
  if (function == "get_cosine_schedule_with_warmup") {
    return rate::CosineWithWarmup{warmup, total, a.value("num_cycles", 0.5)};
  }
  if (function == "get_cosine_with_hard_restarts_schedule_with_warmup") {
    return rate::CosineHardRestartsWithWarmup{warmup, total, integer(a, "num_cycles")};
  }
  if (function == "get_cosine_with_min_lr_schedule_with_warmup") {
    return rate::CosineWithMinRate{.warmup_steps = warmup,
                                   .total_steps = total,
                                   .min_rate = optional_number(a, "min_lr"),
                                   .min_rate_ratio = a.value("min_lr_rate", 0.0)};
  }
  if (function == "get_cosine_with_min_lr_schedule_with_warmup_lr_rate") {
    return rate::CosineWithMinRateShifted{
        .warmup_steps = warmup,
        .total_steps = total,
        .min_rate_ratio = a.value("min_lr_rate", 0.0),
        .warmup_rate_ratio = optional_number(a, "warmup_lr_rate")};
  }
  if (function == "get_polynomial_decay_schedule_with_warmup") {
    return rate::PolynomialWithWarmup{warmup, total, a.value("lr_end", 1e-7),
                                      a.value("power", 1.0)};
  }
  if (function == "get_inverse_sqrt_schedule") {
    return rate::InverseSqrt{warmup, integer(a, "timescale")};
  }
  if (function == "get_wsd_schedule") return warmup_stable_decay(a);
  FAIL("no formula for " << function);
  return {};
}

}  // namespace

TEST_CASE("Warm-up schedules are those of transformers") {
  REQUIRE_SHARED(path, "golden/schedules/transformers.json");
  int compared = 0;
  const auto file = collar::test::read_json(path);
  for (const auto& golden : file["cases"]) {
    INFO(golden["function"] << " " << golden["arguments"]);
    const RateFormula formula = formula_of(golden["function"], golden["arguments"]);
    if (golden.contains(
            "error")) {  // division by zero at the end of the warm-up; here from the start
      CHECK_THROWS_AS(formula(0, golden["base_lr"]), UsageError);
      continue;
    }
    check_rates(formula, golden);
    ++compared;
  }
  CHECK(compared > 50);
}

TEST_CASE("The cosine of the article's recipe, step by step") {
  const rate::CosineWithWarmup formula{.warmup_steps = 2, .total_steps = 10};
  const double expected[] = {0,  .5,      1,       .96194, .853553, .691342,
                             .5, .308658, .146447, .03806, 0,       .03806};
  for (int step = 0; step < 12; ++step) {
    CHECK(formula(step, 1.0) == Approx(expected[step]).margin(1e-6));
  }
}

TEST_CASE("A polynomial schedule refuses an end above its start") {
  const rate::PolynomialWithWarmup formula{.warmup_steps = 1, .total_steps = 5, .end_rate = 0.2};
  CHECK_THROWS_AS(formula(0, 0.1), UsageError);
}
