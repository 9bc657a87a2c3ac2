// SPDX-License-Identifier: Apache-2.0
// `collar train`: trains a classifier on a folder of photos, on as many processes as asked for.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <system_error>

#include "apps/accelerate/run_folder.hpp"
#include "apps/accelerate/screen.hpp"
#include "apps/counted.hpp"
#include "apps/launch/launcher.hpp"
#include "apps/train/dry_run.hpp"
#include "apps/train/options.hpp"
#include "apps/train/resume.hpp"
#include "apps/train/run_report.hpp"
#include "apps/train/trainer.hpp"
#include "apps/verbs.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";

// The newest run of this model below runs/: what `--resume auto` means without --output.
std::optional<fs::path> latest_run(const std::string& model) {
  std::optional<fs::path> latest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kRuns, ignored)) {
    const std::string name = entry.path().filename().native();
    if (!name.starts_with(model + "-") || !RunFolder::holds_run(entry.path())) continue;
    if (!latest || name > latest->filename().native()) latest = entry.path();
  }
  return latest;
}

std::string output_folder(const TrainOptions& options) {
  std::error_code ignored;
  if (!options.output.empty()) return options.output;
  if (options.resume == "auto") {
    if (const auto latest = latest_run(options.model)) return latest->native();
  } else if (fs::is_directory(options.resume, ignored)) {  // RUN
    return options.resume;
  } else if (!options.resume.empty()) {  // RUN/checkpoints/step-N.collar
    const fs::path run = fs::absolute(options.resume).parent_path().parent_path();
    if (RunFolder::holds_run(run)) return run.native();
  }
  const std::string name = fmt::format("{}/{}-{:%Y%m%d-%H%M%S}", kRuns, options.model,
                                       fmt::localtime(std::time(nullptr)));
  std::string free = name;
  for (int number = 2; fs::exists(free, ignored); ++number)
    free = fmt::format("{}-{}", name, number);
  return free;
}

// A run must not become one of the photos' classes.
void require_apart(const TrainOptions& options) {
  std::error_code ignored;
  const fs::path run = fs::weakly_canonical(fs::absolute(options.output, ignored), ignored);
  const fs::path photos = fs::weakly_canonical(fs::absolute(options.data, ignored), ignored);
  const auto lies_in = [&run](const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), run.begin(), run.end()).first ==
           folder.end();
  };
  const bool has_parts = fs::is_directory(photos / "train", ignored);
  const bool is_photo_folder = run == photos || (!has_parts && lies_in(photos)) ||
                               lies_in(photos / "train") || lies_in(photos / "valid");
  if (!is_photo_folder) return;
  throw UsageError(fmt::format("-o {}: among the photos of {} the run would be taken for a class",
                               options.output, options.data));
}

// This program's own ranks: the same command line, and one folder for all of them.
int launch_self(const TrainOptions& options, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), fs::read_symlink("/proc/self/exe").native());
  setenv("COLLAR_OUTPUT", options.output.c_str(), 1);
  LaunchOptions launch;
  launch.ranks = options.ranks;
  launch.log_dir = fs::path(options.output) / "log";
  launch.tee = options.tee;
  return launch_ranks(arguments, launch);
}

// One rank. The folder is made when nothing more can be wrong with what was asked for.
ExitCode train(const TrainOptions& options, const std::optional<CheckpointFile>& checkpoint) {
  Accelerator accelerator(accelerator_options(options));
  const auto report = make_run_report(options, accelerator.is_main_process());
  Trainer trainer(options, accelerator, *report);
  if (checkpoint) trainer.resume(*checkpoint);
  return trainer.run();
}

ExitCode run(const TrainCommandLine& line, const std::vector<std::string>& arguments) {
  const auto variable = [](const char* name) { return std::getenv(name); };
  const comm::Environment environment = comm::Environment::from_process();
  const bool launched = !environment.launcher.empty();
  TrainOptions options = line.resolve(variable);
  options.output = output_folder(options);

  ResumePoint point = find_resume_point(options);
  if (point.recorded) {  // what is not given is as the run had it, but for where to stop
    TrainOptions defaults = *point.recorded;
    defaults.max_steps = 0;
    defaults.output = options.output;
    options = line.resolve(variable, defaults);
  }
  if (launched) {
    if (environment.rank == 0 && options.ranks > 1 && options.ranks != environment.world_size)
      point.warnings.push_back(fmt::format("note: -n {} says nothing here: this job has {} already",
                                           options.ranks, counted(environment.world_size, "rank")));
    options.ranks = environment.world_size;
  }
  validate(options);
  resolve_preprocessing(options);
  if (options.dry_run) return show_plan(options);
  require_apart(options);

  const bool launches = !launched && options.ranks > 1;
  const bool speaks = !launches && environment.rank == 0;
  if (!launched) {
    say(fmt::format("collar train: {} on {}, {}, writing to {}", options.model, options.data,
                    counted(options.ranks, "process"), options.output));
  }
  for (const std::string& warning : point.warnings) {
    if (speaks) say(warning);
  }
  if (point.checkpoint) {
    const std::string differences = accepted_differences(options, *point.recorded);
    if (!differences.empty() && speaks)
      say("warning: going on with options that differ:" + differences);
  } else if (options.force) {
    options.resume.clear();  // start over
  }
  if (is_finished(options, point)) {
    if (environment.rank == 0) say(options.output + ": this run is finished; nothing to do");
    if (environment.rank == 0 && point.checkpoint)
      say(options.max_steps > 0 ? "a larger --max-steps goes on"
                                : "more --epochs go on, with --force");
    return ExitCode::done;
  }
  if (!options.resume.empty() && !point.checkpoint && speaks)
    say("no checkpoint to go on from: starting afresh");
  if (launches) {
    point.checkpoint.reset();  // the ranks open it themselves
    // A run that is there is moved aside before the ranks' logs are opened.
    RunFolder(options.output, start_of(options), [](const std::string& warning) { say(warning); });
    return static_cast<ExitCode>(launch_self(options, arguments));
  }
  return train(options, point.checkpoint);
}

}  // namespace

Verb add_train(CLI::App& program, std::span<const std::string> arguments) {
  CLI::App* command = add_command(
      program, "train", "Train a classifier on a folder of photos, on one or many processes");
  const auto line = std::make_shared<TrainCommandLine>(*command);
  command->footer(
      "Options may also come from --config FILE or variables (COLLAR_BATCH_SIZE=32); what is given "
      "here wins.\n"
      "Learning rates follow accelerate: each of N ranks advances the schedule, so warm-up and "
      "decay are\n"
      "counted in batches of one rank.\n"
      "A line for each epoch and the end go to stdout, progress and remarks to stderr.");
  return {command, [line, words = std::vector<std::string>(arguments.begin(), arguments.end())] {
            return run(*line, words);
          }};
}

}  // namespace collar::apps
