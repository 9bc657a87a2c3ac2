// SPDX-License-Identifier: Apache-2.0
// A run's result does not depend on how its logical ranks are spread over processes: the trained
// models are the same, byte for byte.
#include <catch2/catch.hpp>
#include <memory>

#include "apps/launch/reserved_port.hpp"
#include "tests/apps/support/small_runs.hpp"

using collar::test::Finished;
using collar::test::run_collar;
using collar::test::RunningProgram;
using collar::test::same;
using collar::test::SmallRuns;
using collar::test::operator+;

namespace {

/// The bytes of the model that these options give.
std::string trained(const SmallRuns& runs, std::vector<std::string> options) {
  static int number = 0;
  const std::string name = "run-" + std::to_string(number++);
  const Finished finished = runs.train(name, options);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  std::string bytes = runs.model(name);
  REQUIRE(bytes.size() > 40'000'000);
  return bytes;
}

using Options = std::vector<std::string>;

}  // namespace

TEST_CASE("Four ranks are four processes, two times two, or one process, bit for bit") {
  const SmallRuns runs;
  const std::string reference = trained(runs, {"--virtual-ranks", "4"});
  CHECK(same(trained(runs, {"-n", "4"}), reference));
  CHECK(same(trained(runs, {"-n", "2", "--virtual-ranks", "2"}), reference));
}

TEST_CASE("A launcher of somebody else's starts the same ranks") {
  const SmallRuns runs;
  const std::string reference = trained(runs, {"-n", "2"});
  std::vector<std::string> words{"launch", "-n", "2", COLLAR_PROGRAM};
  for (const std::string& word : runs.arguments("launched", {})) words.push_back(word);
  const Finished finished = run_collar(words);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  CHECK(same(runs.model("launched"), reference));
}

TEST_CASE("torchrun, mpirun and srun start the same ranks") {
  const collar::apps::ReservedPort port;
  const std::string number = std::to_string(port.port());
  const std::string job = "collar-test-" + number;
  struct Launcher {
    std::string name;
    std::string rank;  // the variables with the rank's number
    std::string local_rank;
    collar::apps::Variables others;
  };
  const std::vector<Launcher> launchers{
      {"plain",
       "RANK",
       "",
       {{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", number}}},
      {"torchrun",
       "RANK",
       "LOCAL_RANK",
       {{"WORLD_SIZE", "2"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", number}}},
      {"mpirun",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       {{"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMIX_NAMESPACE", job}}},
      {"srun",
       "SLURM_PROCID",
       "SLURM_LOCALID",
       {{"SLURM_NTASKS", "2"},
        {"SLURM_NTASKS_PER_NODE", "2"},
        {"SLURM_JOB_ID", job},
        {"SLURM_STEP_ID", "0"}}}};
  const SmallRuns runs;
  const Options recipe{"--max-steps", "2"};
  const std::string reference = trained(runs, recipe + Options{"-n", "2"});
  for (const Launcher& launcher : launchers) {
    INFO(launcher.name);
    const auto start = [&](const std::string& rank) {
      collar::apps::Variables variables = launcher.others;
      variables.emplace_back(launcher.rank, rank);
      if (!launcher.local_rank.empty()) variables.emplace_back(launcher.local_rank, rank);
      return std::make_unique<RunningProgram>(runs.command(launcher.name, recipe), variables);
    };
    const auto first = start("0");
    const auto second = start("1");
    for (RunningProgram* rank : {first.get(), second.get()}) {
      const Finished finished = rank->wait();
      INFO(finished.err);
      CHECK(finished.code == 0);
    }
    CHECK(same(runs.model(launcher.name), reference));
  }
}

TEST_CASE("So they are with clipping and accumulation, whatever the buckets") {
  const SmallRuns runs;
  const Options recipe{"--clip-grad", "0.5", "--grad-accum-steps", "2"};
  const Options small_buckets{"--bucket-cap-mb", "0.0625"};
  const std::string reference = trained(runs, recipe + Options{"--virtual-ranks", "4"});
  CHECK(same(trained(runs, recipe + Options{"-n", "4"}), reference));
  CHECK(same(trained(runs, recipe + small_buckets + Options{"-n", "4"}), reference));
  CHECK(same(trained(runs, recipe + small_buckets + Options{"-n", "2", "--virtual-ranks", "2"}),
             reference));
  CHECK_FALSE(same(trained(runs, Options{"--clip-grad", "0.6", "--grad-accum-steps", "2",
                                         "--virtual-ranks", "4"}),
                   reference));
}

TEST_CASE("Three ranks are three processes or one") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--lr", "0.01", "--freeze", "backbone"};
  const std::string reference = trained(runs, {"--virtual-ranks", "3"});
  CHECK(same(trained(runs, {"-n", "3"}), reference));
  CHECK(same(trained(runs, recipe + Options{"-n", "3"}),
             trained(runs, recipe + Options{"--virtual-ranks", "3"})));
  const Options clipped{"--clip-grad", "0.5", "--grad-accum-steps", "2"};
  const std::string one = trained(runs, clipped + Options{"--virtual-ranks", "3"});
  for (const char* megabytes : {"0.0625", "25"}) {
    CHECK(same(trained(runs, clipped + Options{"-n", "3", "--bucket-cap-mb", megabytes}), one));
  }
}

TEST_CASE("Two ranks give the same by the ring and directly") {
  const SmallRuns runs;
  const std::string reference = trained(runs, {"-n", "2"});
  CHECK(same(trained(runs, {"-n", "2", "--all-reduce", "ring"}), reference));
  CHECK(same(trained(runs, {"-n", "2", "--all-reduce", "ring", "--bucket-cap-mb", "0.0625"}),
             reference));
}
