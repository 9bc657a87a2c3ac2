// SPDX-License-Identifier: Apache-2.0
// `collar launch`: any program as the ranks of one job.
#include <fmt/format.h>

#include <memory>

#include "apps/build_info.hpp"
#include "apps/launch/launcher.hpp"
#include "apps/verbs.hpp"
#include "kernels/core/error.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::apps {
namespace {

struct Options {
  LaunchOptions launch;
  std::string ranks = "1";
  std::string log_dir;
  double grace = 10;
  std::vector<std::string> command;
};

int number_of_ranks(const std::string& text) {
  if (text == "auto" || text == "cpu") return available_cpus();
  if (text == "gpu") {
    throw UsageError(
        fmt::format("launch: -n gpu is a rank for each GPU, but CUDA is {}: say cpu, or how many",
                    build_info().cuda));
  }
  int ranks = 0;
  if (!CLI::detail::lexical_cast(text, ranks)) {
    throw UsageError(fmt::format(
        "launch: -n: expected a number, or auto or cpu for as many as there are CPUs, got \"{}\"",
        text));
  }
  return ranks;
}

ExitCode run(Options options) {
  options.launch.ranks = number_of_ranks(options.ranks);
  if (!(options.grace >= 0 && options.grace <= 3600)) {
    throw UsageError(
        fmt::format("launch: --grace: expected 0 to 3600 seconds, got {}", options.grace));
  }
  if (!options.log_dir.empty()) options.launch.log_dir = options.log_dir;
  options.launch.grace = std::chrono::milliseconds(static_cast<std::int64_t>(options.grace * 1000));
  return static_cast<ExitCode>(launch_ranks(options.command, options.launch));
}

}  // namespace

Verb add_launch(CLI::App& program) {
  CLI::App* launch =
      add_command(program, "launch", "Run a program as the ranks of one job on this machine");
  const auto options = std::make_shared<Options>();
  launch->add_option("PROGRAM", options->command, "What to run, and its arguments")
      ->required()
      ->type_name("PROGRAM [ARGUMENTS]");
  launch
      ->add_option("-n,--ranks,--nproc-per-node", options->ranks,
                   "How many processes, 1 to 1024; auto or cpu: as many as there are CPUs")
      ->type_name("N")
      ->capture_default_str();
  launch
      ->add_option("--log-dir", options->log_dir,
                   "Folder for rank-K.log, what every rank but 0 prints")
      ->type_name("DIR");
  launch->add_flag("--tee", options->launch.tee,
                   "Show what the other ranks print as well, as [rK] lines on stderr");
  launch
      ->add_option("--grace", options->grace,
                   "When a rank fails, seconds from asking the others to end to killing them")
      ->type_name("SECONDS")
      ->capture_default_str();
  launch->add_flag("--standalone")
      ->description("As torchrun has it: ranks on this machine alone, as they are anyway");
  launch->prefix_command();  // what follows the program is the program's
  launch->footer(
      "The ranks find RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT\n"
      "in their environment. The exit code is that of the rank that failed first (6 if it was\n"
      "killed), or 0. Ctrl-C is passed on; a second one kills.");
  return {launch, [options] { return run(*options); }};
}

}  // namespace collar::apps
