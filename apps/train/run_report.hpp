// SPDX-License-Identifier: Apache-2.0
// RunReport: what a training run shows and leaves behind. Only the first rank has one that does;
// that of the others says and writes nothing, so that the training loop need not know which rank it
// is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/accelerate/run_folder.hpp"
#include "apps/train/checkpoints.hpp"
#include "apps/train/options.hpp"
#include "apps/train/recipe.hpp"

namespace collar::apps {

/// The one that says nothing.
class RunReport {
 public:
  RunReport() = default;
  virtual ~RunReport() = default;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  /// A line for whoever watches.
  virtual void note(const std::string& /*text*/) {}

  /// Before the first step: makes the run's folder, or goes on in it from `position`; `bytes`
  /// are what it is going to need there. Throws UsageError as RunFolder does, FileError.
  virtual void begin(const Lengths& /*lengths*/, const Position& /*position*/,
                     std::uint64_t /*bytes*/) {}
  virtual void begin_epoch() {}
  virtual void batch(const data::Batch& /*batch*/) {}
  /// After a step, the `step_of_epoch`-th of its epoch. `logged`: it gets a line. The report
  /// measures images_per_second and data_wait itself.
  virtual void step(StepMetrics /*metrics*/, std::int64_t /*step_of_epoch*/, bool /*logged*/) {}
  /// After an epoch's evaluation. The report measures images_per_second and seconds of the training
  /// before it.
  virtual void epoch(EpochMetrics /*metrics*/) {}

  /// Writes a checkpoint. True if it is there; otherwise a line says why not. Throws FileError if
  /// the run is finished: there is no later one.
  virtual bool save(const Trained& /*trained*/, const CheckpointInfo& /*info*/) { return false; }
  /// Writes the trained model. Throws FileError.
  virtual void save_model(const nn::ResNet& /*model*/, const nn::ModelConfig& /*config*/,
                          const data::Preprocessing& /*preprocessing*/) {}
  /// The run has done all it was asked for.
  virtual void finished(const Position& /*position*/) {}
};

/// `options` has to outlive it.
std::unique_ptr<RunReport> make_run_report(const TrainOptions& options, bool first_rank);

}  // namespace collar::apps
