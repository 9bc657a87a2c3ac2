// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/timm_cosine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/core/error.hpp"

namespace collar::nn::rate {

double TimmCosine::operator()(std::int64_t step, double base) const {
  if (t_initial < 1) {
    throw UsageError(
        fmt::format("timm cosine schedule: t_initial must be at least 1, not {}", t_initial));
  }
  if (!(cycle_mul > 0)) {
    throw UsageError(
        fmt::format("timm cosine schedule: cycle_mul must be positive, not {}", cycle_mul));
  }
  if (step < warmup_t) {
    const double slope = (base - warmup_rate) / static_cast<double>(warmup_t);
    return warmup_rate + static_cast<double>(step) * slope;
  }
  const auto t = static_cast<double>(warmup_prefix ? step - warmup_t : step);
  const auto first_length = static_cast<double>(t_initial);

  double cycle = std::floor(t / first_length);
  double length = first_length;
  double start = first_length * cycle;
  if (cycle_mul != 1) {
    // Shrinking cycles have an end, where the logarithm is that of 0.
    const double left = std::max(0.0, 1 - t / first_length * (1 - cycle_mul));
    cycle = std::floor(std::log(left) / std::log(cycle_mul));
    length = std::pow(cycle_mul, cycle) * first_length;
    start = (1 - std::pow(cycle_mul, cycle)) / (1 - cycle_mul) * first_length;
  }
  if (cycle >= static_cast<double>(cycle_limit)) return min_rate;
  const double highest = base * std::pow(cycle_decay, cycle);
  const double angle = std::numbers::pi * std::pow(t - start, k_decay) / std::pow(length, k_decay);
  return min_rate + 0.5 * (highest - min_rate) * (1 + std::cos(angle));
}

std::int64_t TimmCosine::length() const {
  const auto cycles = static_cast<double>(std::max<std::int64_t>(1, cycle_limit));
  const auto first_length = static_cast<double>(t_initial);
  const double all =
      cycle_mul == 1
          ? first_length * cycles
          : std::floor(-first_length * (std::pow(cycle_mul, cycles) - 1) / (1 - cycle_mul));
  return static_cast<std::int64_t>(all) + (warmup_prefix ? warmup_t : 0);
}

}  // namespace collar::nn::rate
