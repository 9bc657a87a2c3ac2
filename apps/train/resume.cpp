// SPDX-License-Identifier: Apache-2.0
#include "apps/train/resume.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "apps/toml.hpp"
#include "apps/train/recipe.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;

bool has_model(const fs::path& run) {
  std::error_code ignored;
  return fs::exists(run / "model.safetensors", ignored);
}

std::optional<TrainOptions> options_recorded_in(const fs::path& run) {
  std::error_code ignored;
  const fs::path file = run / "config.toml";
  if (!fs::exists(file, ignored)) return std::nullopt;
  TrainOptions recorded;
  for (const TomlEntry& entry : read_toml(file))
    set_option(recorded, entry.key, entry.value, file.native());
  return recorded;
}

}  // namespace

ResumePoint find_resume_point(const TrainOptions& options) {
  ResumePoint point;
  if (options.resume.empty()) return point;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(options.resume, ignored);
  if (options.resume == "auto" || is_folder) {
    const fs::path run = is_folder ? options.resume : options.output;
    const fs::path checkpoints = run / "checkpoints";
    point.checkpoint = newest_checkpoint(checkpoints, [&](const std::string& warning) {
      point.warnings.push_back("warning: " + warning);
    });
    if (is_folder && !point.checkpoint && !holds_checkpoints(checkpoints) && !has_model(run)) {
      throw FileError(
          fmt::format("--resume {}: no run with a checkpoint is in this folder", options.resume));
    }
    if (!point.checkpoint) point.recorded = options_recorded_in(run);
  } else {
    point.checkpoint = CheckpointFile::open(options.resume);
    point.checkpoint->verify();
  }
  if (point.checkpoint) {
    point.recorded =
        options_from_toml(read_checkpoint_info(*point.checkpoint).config, "the checkpoint");
  }
  return point;
}

RunFolder::Start start_of(const TrainOptions& options) {
  std::error_code ignored;
  const auto place = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  const fs::path run = place(options.output);
  const fs::path from = place(options.resume);  // a run, or a checkpoint in it
  if (options.resume == "auto" ||
      (!options.resume.empty() && (from == run || from.parent_path().parent_path() == run))) {
    return RunFolder::Start::continued;
  }
  return options.force ? RunFolder::Start::over : RunFolder::Start::fresh;
}

std::string accepted_differences(const TrainOptions& options, const TrainOptions& recorded) {
  std::string list;
  for (const OptionDifference& difference : resume_differences(recorded, options)) {
    list +=
        fmt::format("\n  {}: {} before, {} now", difference.key, difference.before, difference.now);
  }
  if (!list.empty() && !options.force) {
    throw UsageError(
        fmt::format("--resume: this run was made with other options, so going on would not give "
                    "what it would have given:{}\n"
                    "Give the options it had, or --force to go on with the new ones.",
                    list));
  }
  return list;
}

bool is_finished(const TrainOptions& options, const ResumePoint& point) {
  if (options.resume.empty() || start_of(options) != RunFolder::Start::continued) return false;
  const fs::path run = options.output;
  if (point.checkpoint) {
    const CheckpointInfo info = read_checkpoint_info(*point.checkpoint);
    return info.position.finished &&
           info.position.step >= lengths_of(options, info.photos).total_steps && has_model(run);
  }
  // Without checkpoints a model is written at the end alone.
  const bool checkpoints = holds_checkpoints(run / "checkpoints");
  if (!checkpoints && !has_model(run)) return false;
  if (!checkpoints && point.recorded && point.recorded->max_steps == options.max_steps &&
      resume_differences(*point.recorded, options).empty()) {
    return true;
  }
  throw FileError(
      fmt::format("{} holds {}, but no checkpoint to go on from; --force moves that run aside and "
                  "starts over",
                  options.output, checkpoints ? "checkpoints" : "a trained model"));
}

}  // namespace collar::apps
