// SPDX-License-Identifier: Apache-2.0
// A run that was stopped, killed or damaged at any moment and goes on gives the bits of one that
// ran straight through.
#include <catch2/catch.hpp>
#include <csignal>
#include <random>

#include "kernels/runtime/cpu_context.hpp"
#include "tests/apps/support/small_runs.hpp"
#include "tests/support/effort.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using collar::test::eventually;
using collar::test::Finished;
using collar::test::is_alive;
using collar::test::ranks_of;
using collar::test::read_text;
using collar::test::run_collar;
using collar::test::RunningProgram;
using collar::test::same;
using collar::test::SmallRuns;
using collar::test::operator+;
using collar::test::write_text;
namespace fs = std::filesystem;

namespace {

using Options = std::vector<std::string>;

/// Compares a run with the one called "straight".
void check_like_straight(const SmallRuns& runs, const std::string& name) {
  CHECK(same(runs.model(name), runs.model("straight")));
  CHECK(runs.metrics(name) == runs.metrics("straight"));
}

void require_success(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.code == 0);
}

/// Waits until a run under way has logged a step. The test fails if it never does.
void wait_for_step(const SmallRuns& runs, const std::string& name, std::int64_t step) {
  REQUIRE(eventually([&] { return runs.steps_logged(name) >= step; }, 60s));
}

/// Runs an epoch more, one step at a time, each by a new process.
void check_step_by_step(const Options& recipe, int steps) {
  const SmallRuns runs;
  require_success(runs.train("straight", recipe));
  REQUIRE(runs.steps_logged("straight") == steps);
  for (int step = 1; step <= steps; ++step) {
    INFO("until step " << step);
    require_success(
        runs.train("stopped", recipe + Options{"--save-every", "1steps", "--resume", "auto",
                                               "--max-steps", std::to_string(step)}));
    CHECK(runs.steps_logged("stopped") == step);
  }
  check_like_straight(runs, "stopped");
}

}  // namespace

TEST_CASE("Stopping after every single step changes nothing") {
  // 42 photos in batches of 9, two a step: three steps an epoch, the last one of a single batch.
  check_step_by_step(
      {"--epochs", "2", "--batch-size", "9", "--grad-accum-steps", "2", "--clip-grad", "1"}, 6);
}

TEST_CASE("Stopping after every single step changes nothing on two ranks") {
  check_step_by_step({"-n", "2", "--epochs", "2", "--opt", "sgd", "--grad-accum-steps", "2"}, 6);
}

TEST_CASE("A run can be stopped within an epoch and go on on other processes") {
  const SmallRuns runs;
  const Options recipe{"--save-every", "2steps", "--epochs", "2"};
  require_success(runs.train("straight", recipe + Options{"-n", "2"}));
  require_success(runs.train("moved", recipe + Options{"-n", "2", "--max-steps", "3"}));
  const Options rest = recipe + Options{"-n", "1", "--virtual-ranks", "2", "--resume"};
  require_success(runs.train("moved", rest + Options{"auto"}));
  check_like_straight(runs, "moved");
  // A checkpoint in the middle can be gone on from as well, here in a folder of its own.
  require_success(runs.train("copy", recipe + Options{"-n", "2", "--max-steps", "2"}));
  require_success(runs.train("elsewhere", rest + Options{runs.checkpoint("copy", 2).string()}));
  CHECK(same(runs.model("elsewhere"), runs.model("straight")));
}

TEST_CASE("Going on with other threads is warned of, because it may change the last bits") {
  const SmallRuns runs;
  const Options recipe{"--opt",     "sgd", "--save-every", "epoch",
                       "--threads", "0",   "--resume",     "auto"};
  const auto go_on_as = [&](const Options& spread, const char* until) {
    // Left to itself, a process of two takes half of the CPUs.
    return runs.train("run", recipe + spread + Options{"--max-steps", until});
  };
  require_success(go_on_as({"-n", "2"}, "1"));
  const Finished alike = go_on_as({"-n", "2"}, "2");
  CHECK_THAT(alike.err, !Contains("warning"));
  const Finished other = go_on_as({"-n", "1", "--virtual-ranks", "2"}, "3");
  require_success(other);
  const std::string warning = "warning: threads of a process: ";
  CHECK(Contains(warning).match(other.err) == (collar::available_cpus() > 1));
}

TEST_CASE("A job that is killed goes on from its last checkpoint") {
  const SmallRuns runs;
  // Four batches a step: a kill at any moment falls inside an accumulation window, as a rule.
  const Options recipe{
      "--epochs", "4",   "--grad-accum-steps", "4",   "--save-every", "2steps", "-n", "2",
      "--opt",    "sgd", "--resume",           "auto"};
  require_success(runs.train("straight", recipe));
  REQUIRE(runs.steps_logged("straight") == 8);

  SECTION("the launcher and with it all ranks") {
    RunningProgram job(runs.command("killed", recipe));
    wait_for_step(runs, "killed", 3);
    const auto ranks = ranks_of(job.pid());
    CHECK(ranks.size() == 2);
    job.send(SIGKILL);
    CHECK(job.wait().code == 128 + SIGKILL);
    for (const auto& [rank, pid] : ranks) CHECK(eventually([&] { return !is_alive(pid); }));
  }
  SECTION("one rank, and the others end with it within seconds") {
    RunningProgram job(runs.command("killed", recipe));
    wait_for_step(runs, "killed", 3);
    const auto ranks = ranks_of(job.pid());
    REQUIRE(ranks.size() == 2);
    const auto begin = std::chrono::steady_clock::now();
    kill(ranks.at(1), SIGKILL);
    const Finished finished = job.wait();
    CHECK(finished.code == 6);
    CHECK_THAT(finished.err, Contains("rank 1") && Contains("signal 9"));
    CHECK(std::chrono::steady_clock::now() - begin < 15s);
    for (const auto& [rank, pid] : ranks) CHECK_FALSE(is_alive(pid));
  }
  CHECK(runs.model("killed").empty());
  const Finished rest = runs.train("killed", recipe);
  require_success(rest);
  CHECK_THAT(rest.err, Contains("going on from"));
  check_like_straight(runs, "killed");
}

TEST_CASE("However often a job is killed, and whenever, it ends with the same bits") {
  REQUIRE_FULL_TESTS();
  const SmallRuns runs;
  const Options recipe{"--epochs", "4", "--grad-accum-steps", "2",   "--save-every", "1steps",
                       "-n",       "2", "--resume",           "auto"};
  require_success(runs.train("straight", recipe));
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int kills = 0; kills < 60; ++kills) {
    RunningProgram job(runs.command("killed", recipe));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1200));
    const auto ranks = ranks_of(job.pid());
    if (random() % 2 == 0 || ranks.size() < 2) {
      job.send(SIGKILL);
    } else {
      kill(ranks.at(static_cast<int>(random() % 2)), SIGKILL);
    }
    if (job.wait().code == 0) break;  // was done before it could be killed
    for (const auto& [rank, pid] : ranks) CHECK(eventually([&] { return !is_alive(pid); }));
  }
  require_success(runs.train("killed", recipe));
  check_like_straight(runs, "killed");
  for (const auto& entry : fs::recursive_directory_iterator(runs.run("killed")))
    CHECK_THAT(entry.path().filename().string(), !Catch::EndsWith(".tmp"));
}

TEST_CASE("A run that is killed before its first checkpoint starts again") {
  const SmallRuns runs;
  const Options recipe{"--epochs", "3", "--save-every", "epoch", "--resume", "auto"};
  require_success(runs.train("straight", recipe));
  RunningProgram job(runs.command("killed", recipe));
  wait_for_step(runs, "killed", 2);
  job.send(SIGKILL);
  REQUIRE(job.wait().code == 128 + SIGKILL);
  require_success(runs.train("killed", recipe));
  check_like_straight(runs, "killed");
}

TEST_CASE("A damaged checkpoint is passed over with a warning") {
  const SmallRuns runs;
  const Options recipe{"--save-every", "2steps", "--opt", "sgd"};
  require_success(runs.train("straight", recipe));
  require_success(runs.train("damaged", recipe + Options{"--max-steps", "6"}));
  const fs::path newest = runs.checkpoint("damaged", 6);
  std::string bytes = read_text(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_text(newest, bytes);
  const Finished rest = runs.train("damaged", recipe + Options{"--resume", "auto"});
  require_success(rest);
  CHECK_THAT(rest.err, Contains("warning: passed over a damaged checkpoint") &&
                           Contains("step-6.collar") && Contains("step-4.collar"));
  check_like_straight(runs, "damaged");
}

TEST_CASE("Going on from an older checkpoint sets the later ones aside") {
  const SmallRuns runs;
  const Options recipe{"--save-every", "1steps", "--checkpoint-hist", "2", "--max-steps", "4"};
  require_success(runs.train("run", recipe));
  const fs::path folder = runs.run("run") / "checkpoints";
  // Longer ago than the two that are kept.
  const Options shorter{"--save-every", "1steps", "--max-steps", "2"};
  require_success(runs.train("short", shorter));
  fs::copy_file(runs.checkpoint("short", 2), folder / "step-2.collar");
  const Finished finished =
      runs.train("run", recipe + Options{"--resume", (folder / "step-2.collar").string()});
  require_success(finished);
  CHECK_THAT(finished.err, Contains("checkpoints of later steps were moved to"));
  CHECK(fs::exists(folder / "superseded" / "step-4.collar"));
  CHECK(fs::exists(folder / "step-3.collar"));
  CHECK(fs::exists(folder / "step-4.collar"));
  CHECK_FALSE(fs::exists(folder / "step-2.collar"));
}

TEST_CASE("Going on from another run's checkpoint is a new run, which writes over none") {
  const SmallRuns runs;
  require_success(runs.train("first", {"--save-every", "1steps", "--max-steps", "2"}));
  require_success(runs.train("second", {"--max-steps", "1"}));
  const std::string model = runs.model("second");
  for (const fs::path& from : {runs.checkpoint("first", 2), runs.run("first")}) {
    const Finished finished = runs.train("second", {"--resume", from.string()});
    CHECK(finished.code == 2);
    CHECK_THAT(finished.err, Contains("holds a run already"));
  }
  CHECK(same(runs.model("second"), model));
}

TEST_CASE("A folder to go on from that holds no run is an error") {
  const SmallRuns runs;
  fs::create_directory(runs.run("empty"));
  const Finished finished = runs.train("run", {"--resume", runs.run("empty").string()});
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Contains("no run with a checkpoint"));
  CHECK_FALSE(fs::exists(runs.run("run")));
}

TEST_CASE("A run that cannot begin leaves the folder as it was") {
  const SmallRuns runs;
  CHECK(run_collar({"train", runs.run("nowhere"), "-o", runs.run("new")}).code == 3);
  CHECK_FALSE(fs::exists(runs.run("new")));
  require_success(runs.train("old", {"--max-steps", "1"}));
  CHECK(run_collar({"train", runs.run("nowhere"), "-o", runs.run("old"), "--force"}).code == 3);
  CHECK(runs.steps_logged("old") == 1);
}

TEST_CASE("Starting over moves the old run aside, and the ranks' logs are in the new one") {
  const SmallRuns runs;
  require_success(runs.train("run", {"--max-steps", "1"}));
  require_success(runs.train("run", {"--max-steps", "2", "-n", "2", "--force"}));
  CHECK(runs.steps_logged("run.1") == 1);
  CHECK(runs.steps_logged("run") == 2);
  CHECK(fs::exists(runs.run("run") / "log" / "rank-1.log"));
  CHECK_FALSE(fs::exists(runs.run("run.1") / "log" / "rank-1.log"));
}

TEST_CASE(
    "A last batch of a single tiny photo is refused before the first step, not after an epoch") {
  const SmallRuns runs;  // 42 photos
  const Finished finished = runs.train("run", {"--batch-size", "41"});
  CHECK(finished.code == 2);
  CHECK_THAT(finished.err, Contains("the last batch is a single photo"));
  require_success(runs.train("two", {"--batch-size", "41", "--virtual-ranks", "2"}));
}

TEST_CASE("Going on with what is not there starts afresh, with what is finished does nothing") {
  const SmallRuns runs;
  const Options recipe{"--max-steps", "2", "--save-every", "epoch", "--resume", "auto"};
  for (const auto& [name, ranks] : {std::pair{"one", "1"}, {"two", "2"}}) {
    const Options command = recipe + Options{"-n", ranks};
    const Finished fresh = runs.train(name, command);
    require_success(fresh);
    CHECK_THAT(fresh.err, Contains("starting afresh"));
    CHECK_FALSE(runs.model(name).empty());
    const auto before = runs.times(name);
    const Finished again = runs.train(name, command);
    require_success(again);
    CHECK_THAT(again.err, Contains("finished; nothing to do"));
    CHECK(runs.times(name) == before);
  }
}

TEST_CASE("A run is not finished before its model is there") {
  const SmallRuns runs;
  const Options recipe{"--max-steps", "2", "--save-every", "epoch", "--resume", "auto"};
  runs.must_train("straight", recipe);
  // The model cannot be written: something else has its name.
  const fs::path blocker = runs.run("blocked") / "config.json";
  fs::create_directories(blocker / "no file");
  const Finished failed = runs.train("blocked", recipe);
  CHECK(failed.code == 4);
  CHECK_THAT(failed.err, Contains("config.json"));
  fs::remove_all(blocker);
  runs.must_train("blocked", recipe);
  CHECK(same(runs.model("blocked"), runs.model("straight")));
  // One that was lost afterwards is written again.
  fs::remove(runs.run("blocked") / "model.safetensors");
  runs.must_train("blocked", recipe + Options{"-n", "1"});
  CHECK(same(runs.model("blocked"), runs.model("straight")));
  CHECK(runs.metrics("blocked") == runs.metrics("straight"));
}

TEST_CASE("Options that are not given are those of the run") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--seed", "5", "--save-every", "epoch", "-n", "2"};
  runs.must_train("straight", recipe);
  runs.must_train("run", recipe + Options{"--max-steps", "3"});
  SECTION("with --resume auto") {
    const Finished rest = run_collar({"train", "-o", runs.run("run"), "--resume", "auto"});
    INFO(rest.err);
    CHECK(rest.code == 0);
  }
  SECTION("with the folder of the run") {
    const Finished rest = run_collar({"train", "--resume", runs.run("run")});
    INFO(rest.err);
    CHECK(rest.code == 0);
  }
  check_like_straight(runs, "run");
}

TEST_CASE("A finished run without checkpoints is finished all the same") {
  const SmallRuns runs;
  const Options recipe{"--max-steps", "2", "--save-every", "never", "--resume", "auto"};
  runs.must_train("run", recipe);
  const auto before = runs.times("run");
  const Finished again = runs.train("run", recipe);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("finished; nothing to do"));
  const Finished more = runs.train("run", recipe + Options{"--max-steps", "3"});
  CHECK(more.code == 4);
  CHECK_THAT(more.err, Contains("a trained model, but no checkpoint") && Contains("--force"));
  CHECK(runs.times("run") == before);
  runs.must_train("run", recipe + Options{"--max-steps", "3", "--force"});
  CHECK(runs.steps_logged("run") == 3);
  CHECK(runs.steps_logged("run.1") == 2);
}

TEST_CASE("A run whose checkpoints are all unusable is not written over") {
  const SmallRuns runs;
  const Options recipe{"--max-steps", "2", "--save-every", "epoch", "--opt", "sgd"};
  runs.must_train("run", recipe);
  const fs::path folder = runs.run("run") / "checkpoints";
  SECTION("damaged") {
    write_text(runs.checkpoint("run", 2), "damaged");
  }
  SECTION("not a folder") {
    fs::remove_all(folder);
    write_text(folder, "no folder");
  }
  const auto before = runs.times("run");
  const Finished refused =
      runs.train("run", recipe + Options{"--resume", "auto", "--max-steps", "3"});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, Contains("checkpoints"));
  CHECK(runs.times("run") == before);
}

TEST_CASE("Options that would change the result are listed and refused, unless forced") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--save-every", "epoch"};
  require_success(runs.train("run", recipe + Options{"--max-steps", "2"}));
  const std::string model = runs.model("run");
  const Options going_on = recipe + Options{"--resume", "auto", "--max-steps"};
  const Options changed{"3", "--lr", "0.01", "--label-smoothing", "0.1", "--virtual-ranks", "2"};
  const Finished refused = runs.train("run", going_on + changed);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("lr: 0.001 before, 0.01 now") &&
                              Contains("label-smoothing: 0 before, 0.1 now") &&
                              Contains("logical ranks: 1 before, 2 now") && Contains("--force"));
  CHECK(same(runs.model("run"), model));
  // How fast, how often and where is nobody's business.
  require_success(runs.train("run", going_on + Options{"3", "--workers", "2", "--bucket-cap-mb",
                                                       "1", "--checkpoint-hist", "1"}));
  const Finished forced = runs.train("run", going_on + changed + Options{"--force"});
  require_success(forced);
  CHECK_THAT(forced.err, Contains("warning") && Contains("lr: 0.001 before, 0.01 now"));
}

TEST_CASE("Other class names are another run") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--save-every", "epoch", "--resume", "auto"};
  runs.must_train("run", recipe + Options{"--max-steps", "2"});
  for (const char* part : {"train", "valid"}) {
    const fs::path folder = runs.photos() / part;
    fs::rename(fs::directory_iterator(folder)->path(), folder / "zebra");
  }
  const Finished refused = runs.train("run", recipe);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("the classes in") && Contains("--force"));
}

TEST_CASE("Other photos are other results") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--save-every", "epoch", "--resume", "auto"};
  require_success(runs.train("run", recipe + Options{"--max-steps", "2"}));
  fs::path photo;
  for (const auto& entry : fs::recursive_directory_iterator(runs.photos() / "train"))
    if (entry.is_regular_file()) photo = entry.path();
  fs::copy(photo, photo.parent_path() / "one-more.jpg");
  const Finished refused = runs.train("run", recipe);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("42 photos") && Contains("43") && Contains("--force"));
  require_success(runs.train("run", recipe + Options{"--force"}));
}

TEST_CASE("A run that is asked to stop saves its state and says so") {
  struct Case {
    int signal;
    int code;
    Options options;
  };
  const std::vector<Case> cases{{SIGTERM, 75, {"-n", "1", "--epochs", "2"}},
                                {SIGINT, 130, {"-n", "2", "--epochs", "3"}},
                                // A step an epoch: it stops between a last step and its evaluation.
                                {SIGUSR1, 75, {"-n", "1", "--epochs", "9", "--batch-size", "42"}},
                                {SIGTERM, 75, {"-n", "2", "--epochs", "9", "--batch-size", "21"}}};
  const Options recipe{"--save-every", "epoch", "--opt", "sgd", "--resume", "auto"};
  const SmallRuns runs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Options command = recipe + cases[i].options;
    const std::string straight = "straight-" + std::to_string(i);
    const std::string name = "stopped-" + std::to_string(i);
    INFO(name);
    require_success(runs.train(straight, command));
    RunningProgram job(runs.command(name, command));
    wait_for_step(runs, name, 2);
    const auto processes = ranks_of(job.pid());
    job.send(cases[i].signal);
    const Finished stopped = job.wait();
    CHECK(stopped.code == cases[i].code);
    CHECK_THAT(stopped.err, Contains("and saved"));
    for (const auto& [rank, pid] : processes) CHECK_FALSE(is_alive(pid));
    require_success(runs.train(name, command));
    CHECK(same(runs.model(name), runs.model(straight)));
    CHECK(runs.metrics(name) == runs.metrics(straight));
  }
}

TEST_CASE("However the wish to stop arrives, the state is saved before anyone ends") {
  const Options recipe{"--save-every", "never", "--opt", "sgd", "--epochs", "1000", "-n", "2"};
  const SmallRuns runs;
  const auto stop = [&](const std::string& name, const auto& send, int code) {
    INFO(name);
    RunningProgram job(runs.command(name, recipe));
    wait_for_step(runs, name, 2);
    const auto ranks = ranks_of(job.pid());
    REQUIRE(ranks.size() == 2);
    send(job, ranks);
    const Finished stopped = job.wait();
    CHECK(stopped.code == code);
    CHECK_THAT(stopped.err, Contains("and saved"));
    CHECK(fs::exists(runs.checkpoint(name, static_cast<int>(runs.steps_logged(name)))));
  };
  using Ranks = std::map<int, pid_t>;
  const auto to_one = [](int rank) {
    return [rank](const RunningProgram&, const Ranks& ranks) { kill(ranks.at(rank), SIGTERM); };
  };
  stop("first", to_one(0), 75);
  stop("second", to_one(1), 75);
  const auto to_all = [](int signal) {
    return [signal](const RunningProgram& job, const Ranks& ranks) {
      for (const auto& [rank, pid] : ranks) kill(pid, signal);
      job.send(signal);
    };
  };
  stop("key", to_all(SIGINT), 130);
  stop("hangup", to_all(SIGHUP), 75);
}

TEST_CASE("A run that could not save its state does not say that it did") {
  const SmallRuns runs;
  const Options recipe{"--save-every", "never", "--opt", "sgd", "--epochs", "1000", "-n"};
  for (const auto& [ranks, signal, code] :
       {std::tuple{"1", SIGTERM, 143}, {"2", SIGTERM, 143}, {"2", SIGINT, 130}}) {
    const std::string name = std::string("run-") + ranks + "-" + std::to_string(signal);
    RunningProgram job(runs.command(name, recipe + Options{ranks}));
    wait_for_step(runs, name, 2);
    fs::remove_all(runs.run(name) / "checkpoints");
    write_text(runs.run(name) / "checkpoints", "no folder");
    job.send(signal);
    const Finished stopped = job.wait();
    CHECK(stopped.code == code);
    CHECK_THAT(stopped.err, Contains("warning: no checkpoint at step") &&
                                Contains("and not saved") && !Contains("and saved"));
  }
}

TEST_CASE("A loss that is no number ends the run and says what to do") {
  const SmallRuns runs;
  const Options recipe{"--lr", "1e6", "--opt", "sgd", "--warmup-steps", "0"};
  for (const char* ranks : {"1", "2"}) {
    const Finished finished =
        runs.train(std::string("run-") + ranks, recipe + Options{"-n", ranks});
    CHECK(finished.code == 5);
    CHECK_THAT(finished.err, Contains("the loss became ") && Contains(" at step ") &&
                                 Contains("--lr") && Contains("photos/train/"));
    CHECK(runs.model(std::string("run-") + ranks).empty());
  }
}
