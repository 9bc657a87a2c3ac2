// SPDX-License-Identifier: Apache-2.0
// `collar train`: trains a classifier on a folder of photos, on as many processes as asked for.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <system_error>

#include "apps/accelerate/run_folder.hpp"
#include "apps/launch/launcher.hpp"
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

void say(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

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
  if (!options.output.empty()) return options.output;
  if (options.resume == "auto") {
    if (const auto latest = latest_run(options.model)) return latest->native();
  } else if (!options.resume.empty()) {  // RUN/checkpoints/step-N.collar
    const fs::path run = fs::absolute(options.resume).parent_path().parent_path();
    if (RunFolder::holds_run(run)) return run.native();
  }
  return fmt::format("{}/{}-{:%Y%m%d-%H%M%S}", kRuns, options.model,
                     fmt::localtime(std::time(nullptr)));
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

std::optional<CheckpointFile> checkpoint_to_resume(const TrainOptions& options, bool speaks) {
  if (options.resume.empty()) return std::nullopt;
  if (options.resume != "auto") {
    CheckpointFile file = CheckpointFile::open(options.resume);
    file.verify();
    return file;
  }
  return newest_checkpoint(fs::path(options.output) / "checkpoints",
                           [&](const std::string& warning) {
                             if (speaks) say("warning: " + warning);
                           });
}

// Refuses to go on with other options than the run had, unless --force.
void compare_options(const TrainOptions& options, const CheckpointInfo& info, bool speaks) {
  const std::vector<OptionDifference> differences =
      resume_differences(options_from_toml(info.config, "the checkpoint"), options);
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

// Whether a run has done everything that is asked of it now (more epochs or steps may be), and its
// model is still there.
bool nothing_left(const TrainOptions& options, const CheckpointInfo& info) {
  std::error_code ignored;
  return info.position.finished &&
         info.position.step >= lengths_of(options, info.photos).total_steps &&
         fs::exists(fs::path(options.output) / "model.safetensors", ignored);
}

// One rank. The folder is made when nothing more can be wrong with what was asked for.
ExitCode train(const TrainOptions& options, const std::optional<CheckpointFile>& checkpoint) {
  Accelerator accelerator(accelerator_options(options));
  const auto report = make_run_report(options, accelerator.is_main_process());
  Trainer trainer(options, accelerator, *report);
  if (checkpoint) trainer.resume(*checkpoint);
  return trainer.run();
}

ExitCode run(TrainOptions options, const std::vector<std::string>& arguments) {
  const comm::Environment environment = comm::Environment::from_process();
  const bool launched = !environment.launcher.empty();
  if (launched) options.ranks = environment.world_size;
  resolve_preprocessing(options);
  options.output = output_folder(options);
  if (options.dry_run) return show_plan(options);
  if (!launched) {
    say(fmt::format("collar train: {} on {}, {} {}, writing to {}", options.model, options.data,
                    options.ranks, options.ranks == 1 ? "process" : "processes", options.output));
  }
  const bool launches = !launched && options.ranks > 1;
  const bool speaks = !launches && environment.rank == 0;
  std::optional<CheckpointFile> checkpoint = checkpoint_to_resume(options, speaks);
  if (checkpoint) {
    const CheckpointInfo info = read_checkpoint_info(*checkpoint);
    compare_options(options, info, speaks);
    if (options.resume == "auto" && nothing_left(options, info)) {
      if (environment.rank == 0)
        say(fmt::format("{}: this run is finished; nothing to do", options.output));
      return ExitCode::done;
    }
  } else if (!options.resume.empty() && speaks) {
    say("no checkpoint to go on from: starting afresh");
  }
  if (launches) {
    checkpoint.reset();  // the ranks open it themselves
    // A run that is there is moved aside before the ranks' logs are opened.
    RunFolder(options.output, start_of(options), {});
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
            return run(line->resolve([](const char* name) { return std::getenv(name); }), words);
          }};
}

}  // namespace collar::apps
