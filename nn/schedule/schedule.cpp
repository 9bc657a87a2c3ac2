// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar::nn {

Schedule::Schedule(Optimizer& optimizer, RateFormula formula)
    : optimizer_(optimizer), formula_(std::move(formula)), base_rates_(optimizer.learning_rates()) {
  Schedule::apply(0);
}

void Schedule::step() {
  if (driver_) {
    driver_(*this);
  } else {
    advance();
  }
}

void Schedule::advance() {
  set_position(position_ + 1);
}

void Schedule::advance_by(std::int64_t steps) {
  set_position(std::min(position_ + steps, last_position().value_or(kMostSteps)));
}

void Schedule::set_position(std::int64_t position) {
  if (position < 0) throw UsageError(fmt::format("schedule: position {} is negative", position));
  apply(position);
  position_ = position;
}

std::vector<double> Schedule::learning_rates() const {
  return optimizer_.learning_rates();
}

void Schedule::apply(std::int64_t position) {
  std::vector<double> rates;
  rates.reserve(base_rates_.size());
  for (const double base : base_rates_) rates.push_back(formula_(position, base));
  optimizer_.set_learning_rates(rates);
}

ScheduleState Schedule::state() const {
  return {{"position", {static_cast<double>(position_)}}, {"base_rates", base_rates_}};
}

void Schedule::load_state(const ScheduleState& state) {
  const std::int64_t position = count_in(state, "position", last_position().value_or(kMostSteps));
  base_rates_ = rates_in(state, "base_rates", base_rates_.size());
  set_position(position);
}

}  // namespace collar::nn
