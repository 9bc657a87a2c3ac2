// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/schedule_state.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

const std::vector<double>& values_in(const ScheduleState& state, const std::string& name,
                                     std::size_t count) {
  const auto found = state.find(name);
  if (found == state.end()) {
    throw FileError(fmt::format("the state of the schedule has no {}", name));
  }
  if (found->second.size() != count) {
    throw FileError(fmt::format("the state of the schedule has {} numbers as {}, expected {}",
                                found->second.size(), name, count));
  }
  return found->second;
}

}  // namespace

double number_in(const ScheduleState& state, const std::string& name) {
  return values_in(state, name, 1).front();
}

std::int64_t count_in(const ScheduleState& state, const std::string& name, std::int64_t most) {
  const double value = number_in(state, name);
  if (!(value >= 0 && value <= static_cast<double>(most) && value == std::floor(value))) {
    throw FileError(
        fmt::format("the state of the schedule has {} as {}, expected a whole number from 0 to {}",
                    value, name, most));
  }
  return static_cast<std::int64_t>(value);
}

std::vector<double> rates_in(const ScheduleState& state, const std::string& name,
                             std::size_t groups) {
  const std::vector<double>& rates = values_in(state, name, groups);
  for (const double rate : rates) {
    if (!std::isfinite(rate)) {
      throw FileError(fmt::format("the state of the schedule has {} among its {}", rate, name));
    }
  }
  return rates;
}

}  // namespace collar::nn
