// SPDX-License-Identifier: Apache-2.0
// The schedules of torch.optim.lr_scheduler that are functions of the step alone, under torch's
// names. torch goes from one step to the next; these are the closed forms, which agree to 1e-14
// (the annealed cosine to 4e-14 after a hundred steps: there it is torch's that drifts).
#pragma once

#include <cstdint>
#include <vector>

#include "nn/schedule/schedule.hpp"

namespace collar::nn {
namespace rate {

/// Times gamma every step_size steps.
struct StepLR {
  std::int64_t step_size = 30;
  double gamma = 0.1;
  double operator()(std::int64_t step, double base) const;
};

/// Times gamma at each milestone (a repeated one counts twice, one at 0 counts from the start).
struct MultiStepLR {
  std::vector<std::int64_t> milestones{};
  double gamma = 0.1;
  double operator()(std::int64_t step, double base) const;
};

/// Times gamma at every step.
struct ExponentialLR {
  double gamma = 0.9;
  double operator()(std::int64_t step, double base) const;
};

/// Down to min_rate at t_max, up again at 2 t_max, and so on.
struct CosineAnnealingLR {
  std::int64_t t_max = 1;
  double min_rate = 0;
  double operator()(std::int64_t step, double base) const;
};

/// The factor moves evenly from start_factor to end_factor in total_iters steps.
struct LinearLR {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
  double operator()(std::int64_t step, double base) const;
};

/// Times factor for total_iters steps.
struct ConstantLR {
  double factor = 1.0 / 3;
  std::int64_t total_iters = 5;
  double operator()(std::int64_t step, double base) const;
};

/// (1 - step/total_iters)^power, then 0.
struct PolynomialLR {
  std::int64_t total_iters = 5;
  double power = 1;
  double operator()(std::int64_t step, double base) const;
};

/// formulas[i] from milestones[i-1] on, counted from there. One more formula than milestones, which
/// rise.
struct SequentialLR {
  std::vector<RateFormula> formulas{};
  std::vector<std::int64_t> milestones{};
  double operator()(std::int64_t step, double base) const;
};

}  // namespace rate

using StepLR = ScheduleOf<rate::StepLR>;
using MultiStepLR = ScheduleOf<rate::MultiStepLR>;
using ExponentialLR = ScheduleOf<rate::ExponentialLR>;
using CosineAnnealingLR = ScheduleOf<rate::CosineAnnealingLR>;
using LinearLR = ScheduleOf<rate::LinearLR>;
using ConstantLR = ScheduleOf<rate::ConstantLR>;
using PolynomialLR = ScheduleOf<rate::PolynomialLR>;
using SequentialLR = ScheduleOf<rate::SequentialLR>;

}  // namespace collar::nn
