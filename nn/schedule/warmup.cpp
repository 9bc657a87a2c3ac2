// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/warmup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/core/error.hpp"

namespace collar::nn::rate {
namespace {

constexpr double kPi = std::numbers::pi;

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

/// A wave from 1 at progress 0, down to 0 at progress 1 for half a cycle.
double wave(double cycles, double progress) {
  return 0.5 * (1 + std::cos(kPi * cycles * 2 * progress));
}

/// The fraction of `base` that a minimum given either way is.
double minimum_ratio(const std::optional<double>& rate, double rate_ratio, double base) {
  return rate ? *rate / base : rate_ratio;
}

}  // namespace

double Constant::operator()(std::int64_t /*step*/, double base) const {
  return base;
}

double ConstantWithWarmup::operator()(std::int64_t step, double base) const {
  return step < warmup_steps ? base * ratio(step, warmup_steps) : base;
}

double LinearWithWarmup::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  return base * std::max(0.0, ratio(total_steps - step, total_steps - warmup_steps));
}

double CosineWithWarmup::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  const double progress = ratio(step - warmup_steps, total_steps - warmup_steps);
  return base * std::max(0.0, wave(cycles, progress));
}

double CosineHardRestartsWithWarmup::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  const double progress = ratio(step - warmup_steps, total_steps - warmup_steps);
  if (progress >= 1) return 0;
  const double within = std::fmod(static_cast<double>(cycles) * progress, 1.0);
  return base * std::max(0.0, 0.5 * (1 + std::cos(kPi * within)));
}

double CosineWithMinRate::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  const double progress = ratio(step - warmup_steps, total_steps - warmup_steps);
  const double least = minimum_ratio(min_rate, min_rate_ratio, base);
  return base * std::max(0.0, wave(cycles, progress) * (1 - least) + least);
}

double CosineWithMinRateShifted::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) {
    if (!warmup_rate_ratio) return base * ratio(step + 1, warmup_steps);
    const double done = (1 - *warmup_rate_ratio) * static_cast<double>(step) /
                        static_cast<double>(std::max<std::int64_t>(1, warmup_steps - 1));
    return base * (*warmup_rate_ratio + done);
  }
  const double progress = ratio(step - warmup_steps + 1, total_steps - warmup_steps);
  const double least = minimum_ratio(min_rate, min_rate_ratio, base);
  return base * std::max(0.0, wave(cycles, progress) * (1 - least) + least);
}

double PolynomialWithWarmup::operator()(std::int64_t step, double base) const {
  if (!(base > end_rate)) {
    throw UsageError(
        fmt::format("polynomial schedule: end_rate {} must be below the rate {}", end_rate, base));
  }
  if (warmup_steps == total_steps) {
    throw UsageError(fmt::format(
        "polynomial schedule: {} warm-up steps leave none of {} total steps for the decay",
        warmup_steps, total_steps));
  }
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  if (step > total_steps) return base * (end_rate / base);
  const double remaining = 1 - static_cast<double>(step - warmup_steps) /
                                   static_cast<double>(total_steps - warmup_steps);
  return base * (((base - end_rate) * std::pow(remaining, power) + end_rate) / base);
}

double InverseSqrt::operator()(std::int64_t step, double base) const {
  if (step < warmup_steps) return base * ratio(step, warmup_steps);
  const std::int64_t scale = timescale > 0 ? timescale : warmup_steps > 0 ? warmup_steps : 10'000;
  return base * (1 / std::sqrt(static_cast<double>(step + scale - warmup_steps) /
                               static_cast<double>(scale)));
}

double WarmupStableDecay::operator()(std::int64_t step, double base) const {
  const auto between = [&](double factor) {
    return base * std::max(0.0, factor * (1 - min_rate_ratio) + min_rate_ratio);
  };
  if (step < warmup_steps) {
    const double progress = ratio(step, warmup_steps);
    switch (warmup) {
      case Shape::linear:
        return between(progress);
      case Shape::cosine:
        return between(0.5 * (1 - std::cos(kPi * progress)));
      case Shape::one_minus_sqrt:
        return between(1 - std::sqrt(1 - progress));
    }
  }
  if (step < warmup_steps + stable_steps) return base;
  if (step < warmup_steps + stable_steps + decay_steps) {
    const double progress = ratio(step - warmup_steps - stable_steps, decay_steps);
    switch (decay) {
      case Shape::linear:
        return between(1 - progress);
      case Shape::cosine:
        return between(wave(cycles, progress));
      case Shape::one_minus_sqrt:
        return between(1 - std::sqrt(progress));
    }
  }
  return base * min_rate_ratio;
}

}  // namespace collar::nn::rate
