// SPDX-License-Identifier: Apache-2.0
// Trainer: the loop of `collar train` with everything around it: logging, evaluation, checkpoints,
// stopping.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/accelerate/accelerator.hpp"
#include "apps/accelerate/evaluation.hpp"
#include "apps/accelerate/progress.hpp"
#include "apps/accelerate/run_folder.hpp"
#include "apps/exit_codes.hpp"
#include "apps/train/checkpoints.hpp"
#include "apps/train/job.hpp"
#include "apps/train/stop_signal.hpp"
#include "engine/ops/loss.hpp"

namespace collar::apps {

class Trainer {
 public:
  /// Puts the run together: opens the photos, makes the model, joins the other ranks. Nothing is
  /// written yet.
  Trainer(const TrainOptions& options, Accelerator& accelerator);

  /// Sets the run to the state of a checkpoint. Throws UsageError if the photos are not those it
  /// was made with, unless --force.
  void resume(const CheckpointFile& checkpoint);

  /// Trains from where the run is to its end, or until a signal asks to stop; then the state is
  /// saved. On the main process `folder` is where the run writes; null elsewhere.
  ExitCode run(RunFolder* folder);

 private:
  using Clock = std::chrono::steady_clock;

  /// What has been added up since a line of the log, or an epoch, began.
  struct Meter {
    std::int64_t images = 0;
    double wait_seconds = 0;
    Clock::time_point begin = Clock::now();

    double seconds() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  };
  /// What all ranks learn of a step.
  struct StepOutcome {
    double loss = 0;
    StopRequest stop = StopRequest::none;
  };

  void describe() const;
  void require_same_photos(const CheckpointInfo& info) const;
  void warn_of_other_arithmetic(const CheckpointInfo& info) const;
  ExitCode train_epoch();
  void micro_batch(const data::Batch& batch);
  StepOutcome end_step(const data::Batch& batch);
  void log_step(const StepOutcome& outcome, double rate, std::optional<double> grad_norm);
  bool epoch_is_over() const { return position_.batch == lengths_.batches_per_epoch; }
  std::int64_t steps_of_epoch() const;  // made so far
  void end_epoch();
  bool checkpoint_due(bool epoch_over) const;
  void save();
  void finish();
  [[noreturn]] void fail_on_loss(const data::Batch& batch, double loss) const;

  void note(const std::string& text) const;
  void result(const nlohmann::ordered_json& json, const std::string& text) const;
  bool is_main() const { return accelerator_.is_main_process(); }
  Trained trained() { return {*model_, *optimizer_, *schedule_}; }

  const TrainOptions& options_;
  Accelerator& accelerator_;
  RunFolder* folder_ = nullptr;
  Photos photos_;
  std::unique_ptr<nn::ResNet> model_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  Lengths lengths_;
  std::unique_ptr<nn::Schedule> schedule_;
  data::DataLoader train_loader_;
  data::DataLoader valid_loader_;
  CrossEntropyOptions loss_options_;
  StopSignal stop_signal_;
  std::unique_ptr<Progress> progress_;

  Position position_;
  Position saved_;  // of the latest checkpoint
  Clock::time_point last_save_ = Clock::now();
  nn::Average step_loss_;  // over the micro-batches of the step under way
  Meter interval_, epoch_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace collar::apps
