// SPDX-License-Identifier: Apache-2.0
// `collar launch`: any program as the ranks of one job.
#include <memory>

#include "apps/launch/launcher.hpp"
#include "apps/verbs.hpp"

namespace collar::apps {
namespace {

struct Options {
  LaunchOptions launch;
  std::string log_dir;
  double grace = 10;
  std::vector<std::string> command;
};

ExitCode run(Options options) {
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
      ->add_option("-n,--ranks,--nproc-per-node", options->launch.ranks,
                   "How many processes, 1 to 1024")
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
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->capture_default_str();
  launch->prefix_command();  // what follows the program is the program's
  launch->footer(
      "The ranks find RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT\n"
      "in their environment. The exit code is that of the rank that failed first (6 if it was\n"
      "killed), or 0. Ctrl-C is passed on; a second one kills.");
  return {launch, [options] { return run(*options); }};
}

}  // namespace collar::apps
