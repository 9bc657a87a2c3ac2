// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/run_folder.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "kernels/core/error.hpp"
#include "tests/apps/support/program.hpp"

using namespace collar::apps;
using collar::UsageError;
using collar::test::read_text;
using collar::test::TemporaryDirectory;
using collar::test::write_text;
using Start = RunFolder::Start;

namespace {

void log_steps(RunFolder& run, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first; step <= last; ++step) {
    run.log(StepMetrics{.step = step, .loss = 0.5, .lr = 0.1});
  }
}

std::vector<nlohmann::json> lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> parsed;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) parsed.push_back(nlohmann::json::parse(line));
  return parsed;
}

}  // namespace

TEST_CASE("A run folder has its rooms, a line a step and a row an epoch") {
  const TemporaryDirectory folder;
  RunFolder run(folder.path() / "runs" / "first/", Start::fresh, {});
  CHECK(std::filesystem::is_directory(run.checkpoints()));
  CHECK(std::filesystem::is_directory(run.logs()));
  run.write_config("lr = 0.1\n");
  run.log(StepMetrics{.step = 10, .loss = 0.25, .lr = 0.1, .images_per_second = 8, .grad_norm = 3});
  run.log(EpochMetrics{.epoch = 0,
                       .step = 12,
                       .train_loss = 0.3,
                       .valid_loss = 0.4,
                       .top1 = 75,
                       .top5 = 100,
                       .lr = 0.1});
  run.log(EpochMetrics{.epoch = 1, .step = 24, .train_loss = 0.2});

  const auto metrics = lines(run.metrics());
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[0] == nlohmann::json{{"step", 10},
                                     {"epoch", 0},
                                     {"loss", 0.25},
                                     {"lr", 0.1},
                                     {"images_per_second", 8.0},
                                     {"data_wait", 0.0},
                                     {"grad_norm", 3.0}});
  CHECK(metrics[1]["valid_loss"] == 0.4);
  CHECK(metrics[1]["top1"] == 75.0);
  CHECK(metrics[2]["valid_loss"].is_null());
  CHECK(read_text(run.summary()) ==
        "epoch,step,train_loss,valid_loss,top1,top5,lr,images_per_second,seconds\n"
        "0,12,0.3,0.4,75,100,0.1,0,0\n"
        "1,24,0.2,,,,0,0,0\n");
  CHECK(run.failures() == 0);
}

TEST_CASE("A loss that is no number is written as null, so that the line stays JSON") {
  const auto json = to_json(StepMetrics{.loss = std::numeric_limits<double>::quiet_NaN()});
  CHECK(nlohmann::json::parse(json.dump())["loss"].is_null());
}

TEST_CASE("A folder belongs to one process at a time, and a killed one's leavings are swept out") {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "run";
  const auto half_written = path / "checkpoints" / ".step-9.collar.0123456789abcdef.tmp";
  const auto not_ours = path / "checkpoints" / ".notes.tmp";
  {
    const RunFolder first(path, Start::fresh, {});
    write_text(half_written, "…");
    write_text(not_ours, "…");
    CHECK_THROWS_WITH(RunFolder(path, Start::continued, {}),
                      Catch::Contains("another process is training in"));
    CHECK(std::filesystem::exists(half_written));
  }
  const RunFolder next(path, Start::continued, {});
  CHECK_FALSE(std::filesystem::exists(half_written));
  CHECK(std::filesystem::exists(not_ours));
}

TEST_CASE("A run that is there is not written over") {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "run";
  {
    RunFolder run(path, Start::fresh, {});
    run.write_config("# first\n");
    CHECK_FALSE(RunFolder::holds_run(path));  // nothing has been done yet
    log_steps(run, 1, 1);
  }
  CHECK(RunFolder::holds_run(path));
  CHECK_THROWS_WITH(RunFolder(path, Start::fresh, {}),
                    Catch::Contains("--resume auto") && Catch::Contains("--force"));
  std::string told;
  RunFolder over(path, Start::over, [&](const std::string& text) { told = text; });
  CHECK_THAT(told, Catch::Contains((folder.path() / "run.1").string()));
  CHECK_FALSE(RunFolder::holds_run(path));
  CHECK(read_text(folder.path() / "run.1" / "config.toml") == "# first\n");
}

TEST_CASE("A disk that has no room for what is to come is warned of") {
  const TemporaryDirectory folder;
  std::vector<std::string> warnings;
  const RunFolder run(folder.path(), Start::fresh,
                      [&](const std::string& text) { warnings.push_back(text); });
  run.warn_of_shortage(1);
  CHECK(warnings.empty());
  run.warn_of_shortage(std::uint64_t{1} << 62);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0],
             Catch::Contains(" MB free, a checkpoint and the model need 4611686018427 MB"));
}

TEST_CASE("A folder that cannot be made is a usage error") {
  CHECK_THROWS_AS(RunFolder("/proc/none/run", Start::fresh, {}), UsageError);
}

TEST_CASE("A run that goes on forgets what was logged after its checkpoint") {
  const TemporaryDirectory folder;
  RunFolder run(folder.path(), Start::fresh, {});
  log_steps(run, 1, 5);
  run.log(EpochMetrics{.epoch = 0, .step = 5});
  log_steps(run, 6, 9);
  run.log(EpochMetrics{.epoch = 1, .step = 9});
  write_text(run.metrics(), read_text(run.metrics()) + "{\"step\": 1, \"lo");  // a torn line

  run.truncate_after(7, 1);
  const auto metrics = lines(run.metrics());
  CHECK(metrics.size() == 8);
  CHECK(metrics.back()["step"] == 7);
  CHECK_THAT(read_text(run.summary()), Catch::EndsWith("seconds\n0,5,0,,,,0,0,0\n"));

  log_steps(run, 8, 8);
  CHECK(lines(run.metrics()).back()["step"] == 8);

  run.truncate_after(5, 0);  // the first epoch has made its steps and is to be evaluated again
  CHECK(lines(run.metrics()).size() == 5);
  CHECK_THAT(read_text(run.summary()), Catch::EndsWith("seconds\n"));
}

TEST_CASE("Logs that cannot be written are reported once and stop nothing") {
  const TemporaryDirectory folder;
  std::vector<std::string> warnings;
  RunFolder run(folder.path(), Start::fresh,
                [&](const std::string& text) { warnings.push_back(text); });
  std::filesystem::create_symlink("/dev/full", run.metrics());
  log_steps(run, 1, 3);
  CHECK(run.failures() == 3);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("metrics.jsonl") && Catch::Contains("No space left"));
}
