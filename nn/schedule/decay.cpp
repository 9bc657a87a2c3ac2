// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/decay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/core/error.hpp"

namespace collar::nn::rate {
namespace {

void require_positive(const char* schedule, const char* option, std::int64_t value) {
  if (value < 1) {
    throw UsageError(fmt::format("{}: {} must be at least 1, not {}", schedule, option, value));
  }
}

/// rate * gamma^times
double decayed(double rate, double gamma, std::int64_t times) {
  return rate * std::pow(gamma, static_cast<double>(times));
}

}  // namespace

double StepLR::operator()(std::int64_t step, double base) const {
  require_positive("StepLR", "step_size", step_size);
  return decayed(base, gamma, step / step_size);
}

double MultiStepLR::operator()(std::int64_t step, double base) const {
  const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                    [&](std::int64_t milestone) { return milestone <= step; });
  return decayed(base, gamma, passed);
}

double ExponentialLR::operator()(std::int64_t step, double base) const {
  return decayed(base, gamma, step);
}

double CosineAnnealingLR::operator()(std::int64_t step, double base) const {
  require_positive("CosineAnnealingLR", "t_max", t_max);
  const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(t_max);
  return min_rate + (base - min_rate) * (1 + std::cos(angle)) / 2;
}

double LinearLR::operator()(std::int64_t step, double base) const {
  require_positive("LinearLR", "total_iters", total_iters);
  const double done = static_cast<double>(std::min(step, total_iters));
  return base *
         (start_factor + (end_factor - start_factor) * done / static_cast<double>(total_iters));
}

double ConstantLR::operator()(std::int64_t step, double base) const {
  return step < total_iters ? base * factor : base;
}

double PolynomialLR::operator()(std::int64_t step, double base) const {
  require_positive("PolynomialLR", "total_iters", total_iters);
  const double done = static_cast<double>(std::min(step, total_iters));
  return base * std::pow(1 - done / static_cast<double>(total_iters), power);
}

double SequentialLR::operator()(std::int64_t step, double base) const {
  if (formulas.size() != milestones.size() + 1) {
    throw UsageError(fmt::format("SequentialLR: {} schedules need {} milestones, not {}",
                                 formulas.size(), formulas.size() - 1, milestones.size()));
  }
  const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
  const auto index = static_cast<std::size_t>(next - milestones.begin());
  return formulas[index](index == 0 ? step : step - milestones[index - 1], base);
}

}  // namespace collar::nn::rate
