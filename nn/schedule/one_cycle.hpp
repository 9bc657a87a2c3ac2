// SPDX-License-Identifier: Apache-2.0
// torch's OneCycleLR: up to the largest rate, down to almost nothing, the momentum the other way
// round (SGD's momentum, Adam's beta1). Smith and Topin, "Super-convergence", 2018.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/schedule/schedule.hpp"

namespace collar::nn {

struct OneCycleOptions {
  enum class Anneal : std::uint8_t { cosine, linear };

  std::optional<double> max_rate{};  ///< of every group; left out, each group's own rate
  std::int64_t total_steps = 0;
  double rising_part = 0.3;  ///< pct_start: the part of the steps in which the rate rises
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the first rate is max_rate / div_factor
  double final_div_factor = 1e4;  ///< the last one is the first / final_div_factor
  bool three_phase = false;       ///< down to the first rate as fast as up, then to the last one
};

class OneCycleLR final : public Schedule {
 public:
  /// Throws UsageError for options outside their range, and where a phase would have no length
  /// (rising_part * total_steps = 1): there torch divides by zero.
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);

  /// As torch: total_steps + 1 rates can be used, the last of them past the end; stepping on is an
  /// error.
  std::optional<std::int64_t> last_position() const override { return options_.total_steps; }

 private:
  void apply(std::int64_t position) override;

  OneCycleOptions options_;
};

/// The pure functions behind it. `max_rate` of the options comes before `base`.
double one_cycle_rate(const OneCycleOptions& options, std::int64_t step, double base);
double one_cycle_momentum(const OneCycleOptions& options, std::int64_t step);

}  // namespace collar::nn
