// SPDX-License-Identifier: Apache-2.0
// torch's ReduceLROnPlateau: the one schedule that is not a function of the step but of what was
// measured.
#pragma once

#include <cstdint>

#include "nn/optim/optimizer.hpp"
#include "nn/schedule/schedule.hpp"

namespace collar::nn {

struct PlateauOptions {
  enum class Mode : std::uint8_t { min, max };
  enum class Threshold : std::uint8_t { relative, absolute };

  Mode mode = Mode::min;       ///< whether a smaller or a larger metric is better
  double factor = 0.1;         ///< below 1
  std::int64_t patience = 10;  ///< bad epochs in a row that are put up with
  double threshold = 1e-4;     ///< how much better counts as better
  Threshold threshold_mode = Threshold::relative;
  std::int64_t cooldown = 0;  ///< epochs after a reduction in which none is counted as bad
  double min_rate = 0;
  double epsilon = 1e-8;  ///< a smaller change of the rate is not made
};

class ReduceLROnPlateau {
 public:
  /// The optimizer must outlive it. Throws UsageError unless factor < 1.
  ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});

  /// Once an epoch, with its metric. NaN counts as bad.
  void step(double metric);

  std::int64_t bad_epochs() const { return bad_epochs_; }
  std::int64_t cooldown_left() const { return cooldown_left_; }

  /// The optimizer's rates belong to it: they follow from the metrics seen.
  ScheduleState state() const;
  /// Throws FileError for a state that does not fit; then nothing has changed.
  void load_state(const ScheduleState& state);

 private:
  bool is_better(double metric) const;

  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  std::int64_t bad_epochs_ = 0;
  std::int64_t cooldown_left_ = 0;
};

}  // namespace collar::nn
