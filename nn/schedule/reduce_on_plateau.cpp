// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/reduce_on_plateau.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/core/error.hpp"

namespace collar::nn {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.mode == PlateauOptions::Mode::min ? std::numeric_limits<double>::infinity()
                                                      : -std::numeric_limits<double>::infinity()) {
  if (!(options_.factor < 1)) {
    throw UsageError(
        fmt::format("ReduceLROnPlateau: factor must be below 1, not {}", options_.factor));
  }
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool relative = options_.threshold_mode == PlateauOptions::Threshold::relative;
  if (options_.mode == PlateauOptions::Mode::min) {
    return metric < (relative ? best_ * (1 - options_.threshold) : best_ - options_.threshold);
  }
  return metric > (relative ? best_ * (options_.threshold + 1) : best_ + options_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;

  std::vector<double> rates = optimizer_.learning_rates();
  for (double& rate : rates) {
    const double lower = std::max(rate * options_.factor, options_.min_rate);
    if (rate - lower > options_.epsilon) rate = lower;
  }
  optimizer_.set_learning_rates(rates);
  cooldown_left_ = options_.cooldown;
  bad_epochs_ = 0;
}

ScheduleState ReduceLROnPlateau::state() const {
  return {{"best", {best_}},
          {"bad_epochs", {static_cast<double>(bad_epochs_)}},
          {"cooldown_left", {static_cast<double>(cooldown_left_)}},
          {"rates", optimizer_.learning_rates()}};
}

void ReduceLROnPlateau::load_state(const ScheduleState& state) {
  const double best = number_in(state, "best");
  const std::int64_t bad_epochs = count_in(state, "bad_epochs");
  const std::int64_t cooldown_left = count_in(state, "cooldown_left");
  optimizer_.set_learning_rates(rates_in(state, "rates", optimizer_.learning_rates().size()));
  best_ = best;
  bad_epochs_ = bad_epochs;
  cooldown_left_ = cooldown_left;
}

}  // namespace collar::nn
