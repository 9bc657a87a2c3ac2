// SPDX-License-Identifier: Apache-2.0
// What has to be kept to continue a schedule, by name. It comes back out of files, so whoever takes
// it over reads it with these functions: each throws FileError that names what does not fit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace collar::nn {

using ScheduleState = std::map<std::string, std::vector<double>>;

/// The largest number of steps that a state can hold: beyond it, doubles skip whole numbers.
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

/// An entry of one number.
double number_in(const ScheduleState& state, const std::string& name);
/// An entry of one whole number from 0 to `most`.
std::int64_t count_in(const ScheduleState& state, const std::string& name,
                      std::int64_t most = kMostSteps);
/// An entry of one finite number for each parameter group.
std::vector<double> rates_in(const ScheduleState& state, const std::string& name,
                             std::size_t groups);

}  // namespace collar::nn
