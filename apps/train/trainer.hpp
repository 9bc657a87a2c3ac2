// SPDX-License-Identifier: Apache-2.0
// Trainer: the loop of `collar train`, with evaluation, checkpoints and stopping. What is shown and
// written is the RunReport's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "apps/accelerate/accelerator.hpp"
#include "apps/accelerate/evaluation.hpp"
#include "apps/exit_codes.hpp"
#include "apps/train/checkpoints.hpp"
#include "apps/train/recipe.hpp"
#include "apps/train/run_report.hpp"
#include "apps/train/stop_signal.hpp"
#include "engine/ops/loss.hpp"

namespace collar::apps {

class Trainer {
 public:
  /// Puts the run together: opens the photos, makes the model, joins the other ranks. Nothing is
  /// written yet.
  Trainer(const TrainOptions& options, Accelerator& accelerator, RunReport& report);

  /// Sets the run to the state of a checkpoint. Throws UsageError if the photos are not those it
  /// was made with, unless --force.
  void resume(const CheckpointFile& checkpoint);

  /// Trains from where the run is to its end, or until a signal asks to stop; then the state is
  /// saved.
  ExitCode run();

 private:
  using Clock = std::chrono::steady_clock;

  void require_same_job() const;
  void describe() const;
  void require_same_photos(const CheckpointInfo& info) const;
  void warn_of_other_arithmetic(const CheckpointInfo& info) const;
  std::uint64_t bytes_to_save() const;
  ExitCode train_epoch();
  StopRequest end_step(const data::Batch& batch);
  bool is_logged(const data::Batch& batch) const;
  bool epoch_is_over() const { return position_.batch == lengths_.batches_per_epoch; }
  std::int64_t steps_of_epoch() const;  // made so far
  void end_epoch();
  bool checkpoint_due(bool epoch_over) const;
  bool save();
  ExitCode stop(StopRequest request);
  void finish();
  [[noreturn]] void fail_on_loss(const data::Batch& batch, double loss) const;
  Trained trained() { return {*model_, *optimizer_, *schedule_}; }

  const TrainOptions& options_;
  Accelerator& accelerator_;
  RunReport& report_;
  Photos photos_;
  std::unique_ptr<nn::ResNet> model_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  Lengths lengths_;
  std::unique_ptr<nn::Schedule> schedule_;
  data::DataLoader train_loader_;
  data::DataLoader valid_loader_;
  CrossEntropyOptions loss_options_;
  StopSignal stop_signal_;

  Position position_;
  Position saved_;  // of the latest checkpoint this rank knows to be there
  Clock::time_point last_save_ = Clock::now();
  nn::Average step_loss_;  // over the micro-batches of the step under way
};

}  // namespace collar::apps
