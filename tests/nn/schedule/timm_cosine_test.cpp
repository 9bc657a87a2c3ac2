// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/timm_cosine.hpp"

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"
#include "tests/nn/schedule/golden_schedules.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;

TEST_CASE("The timm cosine is timm's, by epoch and by update") {
  REQUIRE_SHARED(path, "golden/schedules/timm.json");
  const auto file = collar::test::read_json(path);
  REQUIRE(file["cases"].size() == 11);
  for (const auto& golden : file["cases"]) {
    const auto& a = golden["arguments"];
    INFO(a);
    const rate::TimmCosine formula{.t_initial = a["t_initial"],
                                   .min_rate = a.value("lr_min", 0.0),
                                   .cycle_mul = a.value("cycle_mul", 1.0),
                                   .cycle_decay = a.value("cycle_decay", 1.0),
                                   .cycle_limit = a.value("cycle_limit", std::int64_t{1}),
                                   .warmup_t = a.value("warmup_t", std::int64_t{0}),
                                   .warmup_rate = a.value("warmup_lr_init", 0.0),
                                   .warmup_prefix = a.value("warmup_prefix", false),
                                   .k_decay = a.value("k_decay", 1.0)};
    nn::test::check_rates(formula, golden);
    CHECK(formula.length() == golden["cycle_length"].get<std::int64_t>());
  }
}

TEST_CASE("Behind the last of shrinking cycles the rate stays at its minimum") {
  const rate::TimmCosine formula{
      .t_initial = 8, .min_rate = 1e-3, .cycle_mul = 0.5, .cycle_limit = 100};
  CHECK(formula(8, 0.1) == 0.1);  // 8, 4, 2, 1, … steps: 16 in all
  CHECK(formula(12, 0.1) == 0.1);
  CHECK(formula(16, 0.1) == 1e-3);
  CHECK(formula(50, 0.1) == 1e-3);
}

TEST_CASE("A timm cosine of no length is refused") {
  CHECK_THROWS_AS((rate::TimmCosine{.t_initial = 0}(0, 0.1)), UsageError);
  CHECK_THROWS_AS((rate::TimmCosine{.t_initial = 5, .cycle_mul = 0}(0, 0.1)), UsageError);
}
