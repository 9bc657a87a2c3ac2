// SPDX-License-Identifier: Apache-2.0
// timm's CosineLRScheduler, in epochs or in updates: whichever its steps are counted in.
#pragma once

#include <cstdint>

#include "nn/schedule/schedule.hpp"

namespace collar::nn {
namespace rate {

/// A linear warm-up from warmup_rate in the place of the first warmup_t steps of the cosine, or
/// with warmup_prefix in front of it; the cosine goes to min_rate in t_initial steps, cycle_limit
/// times; then the rate stays at min_rate, also where timm fails: past the end of all the cycles,
/// however many, that cycle_mul < 1 has room for. Throws UsageError unless t_initial and cycle_mul
/// are positive.
struct TimmCosine {
  std::int64_t t_initial = 1;
  double min_rate = 0;
  double cycle_mul = 1;    ///< each cycle is that much longer than the one before
  double cycle_decay = 1;  ///< and begins that much lower
  std::int64_t cycle_limit = 1;
  std::int64_t warmup_t = 0;
  double warmup_rate = 0;
  bool warmup_prefix = false;
  double k_decay = 1;  ///< exponent of the progress: arXiv 2004.05909

  double operator()(std::int64_t step, double base) const;
  /// Steps of all cycles, and of the warm-up if it stands in front: get_cycle_length().
  std::int64_t length() const;
};

}  // namespace rate

using TimmCosine = ScheduleOf<rate::TimmCosine>;

}  // namespace collar::nn
