// SPDX-License-Identifier: Apache-2.0
// The folder of one run and what is written there while it runs:
//   config.toml  metrics.jsonl  summary.csv  checkpoints/  log/
// and, once it is finished, the model as `eval`, `predict` and timm read it:
//   model.safetensors  config.json  preprocessing.json
// Only the main process has one, and no other process on this machine one of the same folder. Its
// logs may fail (a full disk); training goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/io/file_descriptor.hpp"

namespace collar::apps {

/// A line of metrics.jsonl at a logged step.
struct StepMetrics {
  std::int64_t step = 0;  ///< optimizer steps done
  int epoch = 0;          ///< from 0
  double loss = 0;        ///< mean over the logical ranks
  double lr = 0;
  double images_per_second = 0;
  double data_wait = 0;  ///< share of the time spent waiting for images, 0 to 1
  std::optional<double> grad_norm = {};
};

/// A line of metrics.jsonl and a row of summary.csv after an epoch.
struct EpochMetrics {
  int epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0;
  std::optional<double> valid_loss = {};
  std::optional<double> top1 = {};  ///< per cent
  std::optional<double> top5 = {};  ///< per cent
  double lr = 0;
  double images_per_second = 0;
  double seconds = 0;
};

nlohmann::ordered_json to_json(const StepMetrics& metrics);
nlohmann::ordered_json to_json(const EpochMetrics& metrics);

class RunFolder {
 public:
  enum class Start {
    fresh,     ///< the folder must not hold a run
    over,      ///< a run that is there is moved aside, to NAME.1, NAME.2 …
    continued  ///< a run that is there goes on
  };
  using Warn = std::function<void(const std::string&)>;

  /// Makes the folder and checkpoints/ and log/ in it, locks it, and removes what a killed process
  /// had half written. `warn` is told where a run was moved to, and once if a log cannot be
  /// written. Throws UsageError if the folder cannot be made, holds a run and `start` is fresh, or
  /// is still locked by another process after 5 seconds.
  RunFolder(std::filesystem::path folder, Start start, Warn warn);

  /// True if there is a run in that folder: something has been logged or saved.
  static bool holds_run(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path config() const { return folder_ / "config.toml"; }
  std::filesystem::path metrics() const { return folder_ / "metrics.jsonl"; }
  std::filesystem::path summary() const { return folder_ / "summary.csv"; }
  std::filesystem::path model() const { return folder_ / "model.safetensors"; }
  std::filesystem::path model_config() const { return folder_ / "config.json"; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }
  std::filesystem::path logs() const { return folder_ / "log"; }

  /// Warns if fewer bytes than these are free there.
  void warn_of_shortage(std::uint64_t bytes) const;
  /// Replaces config.toml. Throws FileError.
  void write_config(const std::string& toml) const;
  /// Forgets what was logged after `step` and about epochs from `epoch` on, and lines that a crash
  /// left unfinished. To be called when a run goes on from there, before anything is logged.
  void truncate_after(std::int64_t step, std::int64_t epoch);

  void log(const StepMetrics& metrics);
  void log(const EpochMetrics& metrics);

  /// Lines that could not be written.
  std::int64_t failures() const { return failures_; }

 private:
  void append(const std::filesystem::path& file, const std::string& line);
  void failed(const std::filesystem::path& file, const std::string& reason);

  std::filesystem::path folder_;
  FileDescriptor lock_;
  Warn warn_;
  std::int64_t failures_ = 0;
};

}  // namespace collar::apps
