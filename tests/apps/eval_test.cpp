// SPDX-License-Identifier: Apache-2.0
// `collar eval` on a model that `collar train` has just made.
#include <catch2/catch.hpp>

#include "tests/apps/support/trained_run.hpp"

using Catch::Matchers::StartsWith;
using collar::test::Finished;
using collar::test::run_collar;
using collar::test::TrainedRun;
using nlohmann::json;

TEST_CASE("eval finds what training found, on any number of ranks") {
  const TrainedRun run;
  const json trained = run.last_epoch();
  REQUIRE(trained.contains("valid_loss"));

  const Finished alone = run_collar({"eval", run.model(), run.photos(), "--json"});
  REQUIRE(alone.code == 0);
  const json found = json::parse(alone.out);
  CHECK(found.at("photos") == 9);
  CHECK(found.at("top1") == trained.at("top1"));
  CHECK(found.at("top5") == 100);  // of three classes
  CHECK(found.at("loss").get<double>() ==
        Approx(trained.at("valid_loss").get<double>()).epsilon(1e-6));

  const Finished together = run_collar({"launch", "-n", "2", COLLAR_PROGRAM, "eval", run.model(),
                                        run.photos(), "--batch-size", "2", "--json"});
  REQUIRE(together.code == 0);
  const json shared = json::parse(together.out);
  CHECK(shared.at("photos") == 9);
  CHECK(shared.at("top1") == found.at("top1"));
  CHECK(shared.at("loss").get<double>() == Approx(found.at("loss").get<double>()).epsilon(1e-6));

  const Finished text = run_collar({"eval", run.model(), run.photos() / "valid"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, StartsWith("9 photos of 3 classes: loss "));
}

TEST_CASE("Of a folder without a validation part, eval takes what the run has kept") {
  const collar::test::SmallRuns runs;
  const auto photos = runs.photos() / "train";  // 14 of each of 3 classes
  const Finished trained =
      run_collar({"train", photos, "--model", "resnet18d", "--img-size", "32", "-b", "11",
                  "--threads", "1", "--epochs", "1", "--seed", "3", "-o", runs.run("run")});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto found = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"eval", runs.run("run"), photos, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run_collar(words).out);
  };
  const json kept = found({});
  CHECK(kept.at("photos").get<int>() < 42);
  CHECK(kept.at("top1") == runs.metrics("run").back().at("top1"));
  CHECK(found({"--all"}).at("photos") == 42);
}

TEST_CASE("An empty class in the training part is none of eval's business") {
  const TrainedRun run;
  std::filesystem::create_directory(run.photos() / "train" / "Aardvark");
  const Finished finished = run_collar({"eval", run.model(), run.photos(), "--json"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  CHECK(json::parse(finished.out).at("top1") == run.last_epoch().at("top1"));
}

TEST_CASE("A folder without a model is a file error") {
  const collar::test::TemporaryDirectory folder;
  const Finished finished = run_collar({"eval", folder.path(), folder.path()});
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Catch::Contains(folder.path().native()));
}
