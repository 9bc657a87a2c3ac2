// SPDX-License-Identifier: Apache-2.0
// The warm-up in front of another schedule that GluonCV's trainer uses (ildoonet's
// GradualWarmupScheduler).
#pragma once

#include <cstdint>

#include "nn/schedule/schedule.hpp"

namespace collar::nn {
namespace rate {

/// Epoch e <= warmup: from 0 to the rate (multiplier 1), or from the rate to multiplier times it.
/// Then `after`, whose step 0 is epoch warmup + 1: the full rate is used twice, and a milestone of
/// `after` comes warmup + 1 later. Without `after` the rate stays.
struct GradualWarmup {
  std::int64_t warmup = 5;
  double multiplier = 1;
  RateFormula after{};
  double operator()(std::int64_t step, double base) const;
};

}  // namespace rate

using GradualWarmup = ScheduleOf<rate::GradualWarmup>;

}  // namespace collar::nn
