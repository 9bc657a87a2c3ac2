// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/one_cycle.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

/// What a phase starts and ends with: 0 the first rate, 1 the largest, 2 the last; momenta
/// likewise.
enum class Level : std::uint8_t { first, largest, last };

struct Phase {
  double end;  ///< the step at which it ends
  Level from, to;
};

/// Where in which phase a step lies.
struct Place {
  Level from, to;
  double progress;
};

Place locate(const OneCycleOptions& options, std::int64_t step) {
  if (options.total_steps < 1) {
    throw UsageError(
        fmt::format("OneCycleLR: total_steps must be at least 1, not {}", options.total_steps));
  }
  if (!(options.rising_part >= 0 && options.rising_part <= 1)) {
    throw UsageError(
        fmt::format("OneCycleLR: rising_part must lie in [0, 1], not {}", options.rising_part));
  }
  if (step > options.total_steps) {
    throw UsageError(fmt::format(
        "OneCycleLR: tried to step {} times, but the specified number of total steps is {}", step,
        options.total_steps));
  }
  const auto total = static_cast<double>(options.total_steps);
  const double rising = options.rising_part * total;
  const std::array<Phase, 3> three{{{rising - 1, Level::first, Level::largest},
                                    {2 * rising - 2, Level::largest, Level::first},
                                    {total - 1, Level::first, Level::last}}};
  const std::array<Phase, 2> two{
      {{rising - 1, Level::first, Level::largest}, {total - 1, Level::largest, Level::last}}};
  const std::span<const Phase> phases =
      options.three_phase ? std::span<const Phase>(three) : std::span<const Phase>(two);

  double start = 0;
  for (const Phase& phase : phases) {
    if (phase.end == start) {
      throw UsageError(fmt::format(
          "OneCycleLR: with a rising_part of {} of {} steps, a phase begins and ends at step {}; "
          "another rising_part or number of steps gives it a length",
          options.rising_part, options.total_steps, start));
    }
    start = phase.end;
  }

  const auto position = static_cast<double>(step);
  start = 0;
  for (const Phase& phase : phases.first(phases.size() - 1)) {
    if (position <= phase.end) {
      return {phase.from, phase.to, (position - start) / (phase.end - start)};
    }
    start = phase.end;
  }
  const Phase& last = phases.back();
  return {last.from, last.to, (position - start) / (last.end - start)};
}

double annealed(OneCycleOptions::Anneal kind, double from, double to, double progress) {
  if (kind == OneCycleOptions::Anneal::linear) return (to - from) * progress + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * progress) + 1);
}

}  // namespace

double one_cycle_rate(const OneCycleOptions& options, std::int64_t step, double base) {
  const double largest = options.max_rate.value_or(base);
  const double first = largest / options.div_factor;
  const std::array<double, 3> rates{first, largest, first / options.final_div_factor};
  const Place place = locate(options, step);
  return annealed(options.anneal, rates[static_cast<std::size_t>(place.from)],
                  rates[static_cast<std::size_t>(place.to)], place.progress);
}

double one_cycle_momentum(const OneCycleOptions& options, std::int64_t step) {
  const auto momentum = [&](Level level) {
    return level == Level::largest ? options.base_momentum : options.max_momentum;
  };
  const Place place = locate(options, step);
  return annealed(options.anneal, momentum(place.from), momentum(place.to), place.progress);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options)
    : Schedule(optimizer, [options](std::int64_t step,
                                    double base) { return one_cycle_rate(options, step, base); }),
      options_(options) {
  OneCycleLR::apply(0);
}

void OneCycleLR::apply(std::int64_t position) {
  Schedule::apply(position);
  if (options_.cycle_momentum) optimizer().set_momentum(one_cycle_momentum(options_, position));
}

}  // namespace collar::nn
