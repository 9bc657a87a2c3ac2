// SPDX-License-Identifier: Apache-2.0
// What a learning-rate schedule is. The rate itself is a pure function of the number of steps made
// (a RateFormula: the files beside this one hold them); a Schedule ties such a function to an
// optimizer and remembers where in it we are. So a schedule can be resumed by setting one number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "nn/optim/optimizer.hpp"
#include "nn/schedule/schedule_state.hpp"

namespace collar::nn {

/// The learning rate after `step` steps (0: before the first) of a group whose own rate is `base`.
using RateFormula = std::function<double(std::int64_t step, double base)>;

class Schedule {
 public:
  /// Takes the rates the optimizer's groups have now as their own, and sets the rates for step 0.
  /// The optimizer must outlive the schedule. Throws UsageError where the formula does.
  Schedule(Optimizer& optimizer, RateFormula formula);
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// What a training loop calls after each optimizer step: advance(), unless a driver decides.
  void step();
  /// One step further. Throws UsageError past the end of a schedule that has one.
  void advance();
  /// `steps` further, but not past the end: a step of several ranks is one of the schedule for each
  /// of them, and the last ones may be too many.
  void advance_by(std::int64_t steps);
  /// Steps made so far.
  std::int64_t position() const { return position_; }
  /// Jumps to a position, as if that many steps had been made.
  void set_position(std::int64_t position);
  /// The rates of the optimizer's groups now.
  std::vector<double> learning_rates() const;
  /// The last position there is, for schedules that end (one-cycle).
  virtual std::optional<std::int64_t> last_position() const { return std::nullopt; }

  ScheduleState state() const;
  /// Takes over what state() gave. Throws FileError for the state of another number of groups, a
  /// position that is no number of steps or lies past the end, and rates that are not finite; then
  /// nothing has changed.
  void load_state(const ScheduleState& state);

  /// Puts `driver` in the place of advance() when step() is called: a run that plays several ranks
  /// or accumulates gradients decides itself when, and how often, to advance. An empty one ends
  /// that.
  void set_driver(std::function<void(Schedule&)> driver) { driver_ = std::move(driver); }

 protected:
  Optimizer& optimizer() { return optimizer_; }
  /// Sets the optimizer's rates (and whatever else the schedule moves) for a position.
  virtual void apply(std::int64_t position);

 private:
  Optimizer& optimizer_;
  RateFormula formula_;
  std::vector<double> base_rates_;
  std::int64_t position_ = 0;
  std::function<void(Schedule&)> driver_;
};

/// The schedule of a formula with options: `ScheduleOf<Formula> schedule(optimizer, {.option =
/// ...})`.
template <typename Formula>
class ScheduleOf final : public Schedule {
 public:
  explicit ScheduleOf(Optimizer& optimizer, const Formula& formula = {})
      : Schedule(optimizer, formula) {}
};

}  // namespace collar::nn
