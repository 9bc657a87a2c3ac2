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
#include "apps/toml.hpp"
#include "apps/train/checkpoints.hpp"
#include "apps/train/dry_run.hpp"
#include "apps/train/options.hpp"
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
  const fs::path run = fs::weakly_canonical(options.output, ignored);
  fs::path photos = fs::weakly_canonical(options.data, ignored);
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

std::optional<CheckpointFile> checkpoint_to_resume(const TrainOptions& options,
                                                   std::vector<std::string>& warnings) {
  if (options.resume.empty()) return std::nullopt;
  std::error_code ignored;
  const bool is_run = fs::is_directory(options.resume, ignored);
  if (options.resume != "auto" && !is_run) {
    CheckpointFile file = CheckpointFile::open(options.resume);
    file.verify();
    return file;
  }
  const fs::path run = is_run ? options.resume : options.output;
  return newest_checkpoint(run / "checkpoints", [&](const std::string& warning) {
    warnings.push_back("warning: " + warning);
  });
}

// The options of the run that is to go on, as far as they are known.
std::optional<TrainOptions> recorded_options(const TrainOptions& options,
                                             const std::optional<CheckpointFile>& checkpoint) {
  if (checkpoint)
    return options_from_toml(read_checkpoint_info(*checkpoint).config, "the checkpoint");
  std::error_code ignored;
  const fs::path file = fs::path(options.output) / "config.toml";
  if (options.resume.empty() || !fs::exists(file, ignored)) return std::nullopt;
  TrainOptions recorded;
  for (const TomlEntry& entry : read_toml(file))
    set_option(recorded, entry.key, entry.value, file.native());
  return recorded;
}

// Refuses to go on with other options than the run had, unless --force.
void compare_options(const TrainOptions& options, const TrainOptions& recorded, bool speaks) {
  const std::vector<OptionDifference> differences = resume_differences(recorded, options);
  if (differences.empty()) return;
  std::string list;
  for (const OptionDifference& difference : differences) {
    list +=
        fmt::format("\n  {}: {} before, {} now", difference.key, difference.before, difference.now);
  }
  if (!options.force) {
    throw UsageError(
        fmt::format("--resume: this run was made with other options, so going on would not give "
                    "what it would have given:{}\n"
                    "Give the options it had, or --force to go on with the new ones.",
                    list));
  }
  if (speaks) say("warning: going on with options that differ:" + list);
}

bool has_model(const TrainOptions& options) {
  std::error_code ignored;
  return fs::exists(fs::path(options.output) / "model.safetensors", ignored);
}

// Whether a run has done everything that is asked of it now (more epochs or steps may be), and its
// model is still there.
bool is_finished(const TrainOptions& options, const CheckpointFile& checkpoint) {
  const CheckpointInfo info = read_checkpoint_info(checkpoint);
  return info.position.finished &&
         info.position.step >= lengths_of(options, info.photos).total_steps && has_model(options);
}

// The same of a run without any checkpoint: a model is written at the end alone. Throws FileError
// if there is something that starting afresh would write over.
bool is_finished(const TrainOptions& options, const std::optional<TrainOptions>& recorded) {
  const bool checkpoints = holds_checkpoints(fs::path(options.output) / "checkpoints");
  const bool model = has_model(options);
  if (!checkpoints && !model) return false;
  if (!checkpoints && recorded && recorded->max_steps == options.max_steps &&
      resume_differences(*recorded, options).empty()) {
    return true;
  }
  throw FileError(
      fmt::format("{} holds {}, but no checkpoint to go on from; --force moves that run "
                  "aside and starts over",
                  options.output, checkpoints ? "checkpoints" : "a trained model"));
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

  std::vector<std::string> warnings;
  std::optional<CheckpointFile> checkpoint = checkpoint_to_resume(options, warnings);
  const std::optional<TrainOptions> recorded = recorded_options(options, checkpoint);
  if (recorded) {  // what is not given is as the run had it, but for where to stop
    TrainOptions defaults = *recorded;
    defaults.max_steps = 0;
    defaults.output = options.output;
    options = line.resolve(variable, defaults);
  }
  if (launched) {
    if (environment.rank == 0 && options.ranks > 1 && options.ranks != environment.world_size)
      warnings.push_back(fmt::format("note: -n {} says nothing here: this job has {} already",
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
  for (const std::string& warning : warnings) {
    if (speaks) say(warning);
  }
  if (checkpoint) compare_options(options, *recorded, speaks);
  if (!checkpoint && !options.resume.empty() && options.force)
    options.resume.clear();  // start over
  if (!options.resume.empty()) {
    if (checkpoint ? is_finished(options, *checkpoint) : is_finished(options, recorded)) {
      if (environment.rank == 0)
        say(fmt::format("{}: this run is finished; nothing to do (a larger {} goes on)",
                        options.output, options.max_steps > 0 ? "--max-steps" : "--epochs"));
      return ExitCode::done;
    }
    if (!checkpoint && speaks) say("no checkpoint to go on from: starting afresh");
  }
  if (launches) {
    checkpoint.reset();  // the ranks open it themselves
    // A run that is there is moved aside before the ranks' logs are opened.
    RunFolder(options.output, start_of(options), [](const std::string& warning) { say(warning); });
    return static_cast<ExitCode>(launch_self(options, arguments));
  }
  return train(options, checkpoint);
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
