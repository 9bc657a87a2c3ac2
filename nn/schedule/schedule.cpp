// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/schedule.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

constexpr double kMostSteps = 0x1p53;  // beyond, a double skips some

}  // namespace

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
  const auto position = state.find("position");
  const auto rates = state.find("base_rates");
  if (position == state.end() || position->second.size() != 1 || rates == state.end()) {
    throw UsageError("schedule: the state has no position or no base_rates");
  }
  if (rates->second.size() != base_rates_.size()) {
    throw UsageError(
        fmt::format("schedule: the state has {} parameter groups, the optimizer has {}",
                    rates->second.size(), base_rates_.size()));
  }
  const double steps = position->second.front();
  if (!(steps >= 0 && steps <= kMostSteps)) {
    throw UsageError(fmt::format("schedule: the state is at position {}", steps));
  }
  base_rates_ = rates->second;
  set_position(static_cast<std::int64_t>(steps));
}

}  // namespace collar::nn
