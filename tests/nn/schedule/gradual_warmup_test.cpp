// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/gradual_warmup.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "kernels/core/error.hpp"
#include "nn/schedule/decay.hpp"

using namespace collar;
using namespace collar::nn;

TEST_CASE("A gradual warm-up before a cosine, as GluonCV's trainer runs it") {
  const rate::GradualWarmup formula{.warmup = 3, .after = rate::CosineAnnealingLR{.t_max = 7}};
  const std::vector<double> expected{0,       .0333333, .0666667, .1,      .1,
                                     .095048, .081174,  .061126,  .038874, .018826};
  for (std::size_t epoch = 0; epoch < expected.size(); ++epoch) {
    CHECK(formula(static_cast<std::int64_t>(epoch), 0.1) == Approx(expected[epoch]).margin(1e-6));
  }
}

TEST_CASE("Milestones behind a gradual warm-up come late by its length and one") {
  const rate::GradualWarmup formula{.warmup = 3, .after = rate::MultiStepLR{.milestones = {4, 6}}};
  CHECK(formula(7, 0.1) == Approx(0.1));
  CHECK(formula(8, 0.1) == Approx(0.01));
  CHECK(formula(9, 0.1) == Approx(0.01));
  CHECK(formula(10, 0.1) == Approx(0.001));
}

TEST_CASE("A gradual warm-up with a multiplier starts at the rate and ends at a multiple of it") {
  const rate::GradualWarmup formula{.warmup = 4, .multiplier = 8};
  CHECK(formula(0, 0.1) == Approx(0.1));
  CHECK(formula(2, 0.1) == Approx(0.45));
  CHECK(formula(4, 0.1) == Approx(0.8));
  CHECK(formula(9, 0.1) == Approx(0.8));
  CHECK_THROWS_AS((rate::GradualWarmup{.multiplier = 0.5}(0, 0.1)), UsageError);
}
