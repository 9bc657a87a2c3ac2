// SPDX-License-Identifier: Apache-2.0
// Every option of `collar train` does something: the run with it differs from the run without.
#include <catch2/catch.hpp>
#include <csignal>
#include <map>

#include "tests/apps/support/small_runs.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using collar::test::eventually;
using collar::test::Finished;
using collar::test::ranks_of;
using collar::test::RunningProgram;
using collar::test::same;
using collar::test::SmallRuns;
using collar::test::operator+;
namespace fs = std::filesystem;

namespace {

using Options = std::vector<std::string>;

/// Runs with the classifier alone in training, three steps each; every recipe is run once.
class Recipes {
 public:
  const std::string& name_of(const Options& options) {
    auto [entry, is_new] = names_.try_emplace(options, "run-" + std::to_string(names_.size()));
    if (is_new) runs_.must_train(entry->second, common_ + options);
    return entry->second;
  }
  std::string model(const Options& options) { return runs_.model(name_of(options)); }
  std::vector<nlohmann::json> metrics(const Options& options) {
    return runs_.metrics(name_of(options));
  }

 private:
  SmallRuns runs_;
  Options common_{"--freeze", "backbone", "--max-steps", "3", "--warmup-steps", "0"};
  std::map<Options, std::string> names_;
};

struct Effect {
  Options base;  ///< what the option needs to have a meaning
  Options added;
};

std::string words(const Options& options) {
  std::string text;
  for (const std::string& word : options) text += word + " ";
  return text;
}

}  // namespace

TEST_CASE("Options that shape the training change the model") {
  const Options timm{"--transform", "timm"};
  const Options sgd{"--opt", "sgd"};
  const Options multistep{"--sched", "multistep", "--decay-milestones", "1"};
  const Options restarts{"--sched", "cosine-restarts", "--num-cycles", "2"};
  const std::vector<Effect> effects{
      {{}, {"--weight-decay", "0.5"}},
      {{}, {"--min-lr", "5e-4"}},
      {{}, {"--sched", "linear"}},
      {{}, {"--sched", "constant"}},
      {{}, {"--sched", "onecycle"}},
      {{"--sched", "constant"}, {"--sched", "inverse-sqrt", "--warmup-steps", "1"}},
      {{"--sched", "linear"}, {"--sched", "polynomial"}},
      {{"--sched", "polynomial"}, {"--min-lr", "5e-4"}},
      {{}, restarts},
      {{"--sched", "constant"}, multistep},
      {multistep, {"--decay-rate", "0.5"}},
      {{}, sgd},
      {sgd, {"--momentum", "0.5"}},
      {sgd, {"--nesterov"}},
      {{}, {"--label-smoothing", "0.1"}},
      {{}, {"--clip-grad", "0.01"}},
      {{}, {"--seed", "7"}},
      {{}, {"--num-classes", "5"}},
      {{}, timm},
      {{}, {"--mean", "0.5,0.4,0.3"}},
      {{}, {"--std", "0.5,0.4,0.3"}},
      {{}, {"--interpolation", "bicubic"}},
      {{}, {"--resize-passes", "pillow12"}},
      {{}, {"--hflip", "0.5"}},
      {timm, {"--hflip", "0"}}};
  Recipes recipes;
  for (const Effect& effect : effects) {
    INFO(words(effect.base) << "and " << words(effect.added));
    CHECK_FALSE(same(recipes.model(effect.base + effect.added), recipes.model(effect.base)));
  }
  // Of the photos to validate alone.
  const Options whole_epoch = timm + Options{"--max-steps", "0"};
  CHECK(recipes.metrics(whole_epoch + Options{"--crop-pct", "0.5"}) !=
        recipes.metrics(whole_epoch));
}

TEST_CASE("Three ranks add in another order by the ring, and with other buckets") {
  const SmallRuns runs;
  const Options three{"-n", "3", "--max-steps", "2"};
  const Options ring = three + Options{"--all-reduce", "ring"};
  runs.must_train("direct", three);
  runs.must_train("ring", ring);
  runs.must_train("small-buckets", ring + Options{"--bucket-cap-mb", "0.0625"});
  CHECK_FALSE(same(runs.model("ring"), runs.model("direct")));
  CHECK_FALSE(same(runs.model("ring"), runs.model("small-buckets")));
  // The variable for programs of one's own says nothing here: config.toml would not show it.
  const Finished finished = runs.train("variable", three, {{"COLLAR_ALGO", "all_reduce=ring"}});
  REQUIRE(finished.code == 0);
  CHECK(same(runs.model("variable"), runs.model("direct")));
}

TEST_CASE("The number of threads that load photos changes nothing") {
  const SmallRuns runs;
  const Options recipe{"--hflip", "0.5", "--max-steps", "4", "-j"};
  runs.must_train("1", recipe + Options{"1"});
  for (const char* workers : {"0", "2", "3"}) {
    runs.must_train(workers, recipe + Options{workers});
    CHECK(same(runs.model(workers), runs.model("1")));
  }
}

TEST_CASE("Checkpoints are written when they are asked for, and so many are kept") {
  const SmallRuns runs;
  const Options recipe{"--freeze",          "backbone", "--save-every", "1steps",
                       "--checkpoint-hist", "2",        "--max-steps",  "4"};
  runs.must_train("run", recipe);
  for (int step = 1; step <= 4; ++step) {
    CAPTURE(step);
    CHECK(fs::exists(runs.checkpoint("run", step)) == (step > 2));
  }
  runs.must_train("minutes", {"--save-every", "1min", "--max-steps", "2"});
  CHECK(fs::exists(runs.checkpoint("minutes", 2)));  // the end is always kept
  CHECK_FALSE(fs::exists(runs.checkpoint("minutes", 1)));
}

TEST_CASE("A rank that stands still is given up after the timeout") {
  const SmallRuns runs;
  RunningProgram job(
      runs.command("run", {"-n", "2", "--epochs", "1000", "--timeout", "1", "--opt", "sgd"}));
  REQUIRE(eventually([&] { return runs.steps_logged("run") >= 2; }, 60s));
  const auto ranks = ranks_of(job.pid());
  REQUIRE(ranks.size() == 2);
  kill(ranks.at(1), SIGSTOP);
  const Finished finished = job.wait();
  CHECK(finished.code == 6);
  CHECK_THAT(finished.err, Contains("rank 1"));
}
