// SPDX-License-Identifier: Apache-2.0
// Schedules that warm up linearly from 0 and then decay, as in transformers.optimization. Each
// struct is a formula with its options: CosineWithWarmup schedule(optimizer, {.warmup_steps = 5,
// .total_steps = n}).
#pragma once

#include <cstdint>
#include <optional>

#include "nn/schedule/schedule.hpp"

namespace collar::nn {
namespace rate {

/// Always the group's own rate.
struct Constant {
  double operator()(std::int64_t step, double base) const;
};

/// get_constant_schedule_with_warmup
struct ConstantWithWarmup {
  std::int64_t warmup_steps = 0;
  double operator()(std::int64_t step, double base) const;
};

/// get_linear_schedule_with_warmup: to 0 at total_steps, and 0 from there on.
struct LinearWithWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double operator()(std::int64_t step, double base) const;
};

/// get_cosine_schedule_with_warmup: to 0 at total_steps. Not clamped: it rises again after that.
struct CosineWithWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double cycles = 0.5;  ///< waves; a half takes the rate down once
  double operator()(std::int64_t step, double base) const;
};

/// get_cosine_with_hard_restarts_schedule_with_warmup: `cycles` descents; 0 from total_steps on.
struct CosineHardRestartsWithWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  std::int64_t cycles = 1;
  double operator()(std::int64_t step, double base) const;
};

/// get_cosine_with_min_lr_schedule_with_warmup: down to min_rate (or to the fraction
/// min_rate_ratio of the group's own rate, if min_rate is left out).
struct CosineWithMinRate {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double cycles = 0.5;
  std::optional<double> min_rate{};
  double min_rate_ratio = 0;
  double operator()(std::int64_t step, double base) const;
};

/// get_cosine_with_min_lr_schedule_with_warmup_lr_rate: the same, one step early, so that no step
/// is made with rate 0; the warm-up begins at warmup_rate_ratio (default 1/warmup_steps).
struct CosineWithMinRateShifted {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double cycles = 0.5;
  std::optional<double> min_rate{};
  double min_rate_ratio = 0;
  std::optional<double> warmup_rate_ratio{};
  double operator()(std::int64_t step, double base) const;
};

/// get_polynomial_decay_schedule_with_warmup: to end_rate at total_steps, and end_rate from there
/// on. Throws UsageError if end_rate is not below the group's rate or warmup_steps equals
/// total_steps.
struct PolynomialWithWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double end_rate = 1e-7;
  double power = 1;
  double operator()(std::int64_t step, double base) const;
};

/// get_inverse_sqrt_schedule
struct InverseSqrt {
  std::int64_t warmup_steps = 0;
  std::int64_t timescale = 0;  ///< 0: warmup_steps, or 10000 without a warm-up
  double operator()(std::int64_t step, double base) const;
};

/// get_wsd_schedule: warm up from min_rate_ratio, stay, decay to min_rate_ratio, and stay there.
struct WarmupStableDecay {
  enum class Shape : std::uint8_t { linear, cosine, one_minus_sqrt };
  std::int64_t warmup_steps = 0;
  std::int64_t stable_steps = 0;
  std::int64_t decay_steps = 0;
  Shape warmup = Shape::linear;
  Shape decay = Shape::cosine;
  double min_rate_ratio = 0;
  double cycles = 0.5;
  double operator()(std::int64_t step, double base) const;
};

}  // namespace rate

using Constant = ScheduleOf<rate::Constant>;
using ConstantWithWarmup = ScheduleOf<rate::ConstantWithWarmup>;
using LinearWithWarmup = ScheduleOf<rate::LinearWithWarmup>;
using CosineWithWarmup = ScheduleOf<rate::CosineWithWarmup>;
using CosineHardRestartsWithWarmup = ScheduleOf<rate::CosineHardRestartsWithWarmup>;
using CosineWithMinRate = ScheduleOf<rate::CosineWithMinRate>;
using CosineWithMinRateShifted = ScheduleOf<rate::CosineWithMinRateShifted>;
using PolynomialWithWarmup = ScheduleOf<rate::PolynomialWithWarmup>;
using InverseSqrt = ScheduleOf<rate::InverseSqrt>;
using WarmupStableDecay = ScheduleOf<rate::WarmupStableDecay>;

}  // namespace collar::nn
