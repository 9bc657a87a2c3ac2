// SPDX-License-Identifier: Apache-2.0
// The program as a newcomer meets it: help, versions, mistakes.
#include <catch2/catch.hpp>

#include "tests/apps/support/program.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using collar::test::Finished;
using collar::test::run_collar;

TEST_CASE("collar without a verb shows the verbs and fails") {
  const Finished finished = run_collar({});
  CHECK(finished.code == 2);
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Contains("launch") && Contains("data") && Contains("env"));
}

TEST_CASE("help goes to stdout, names the whole command and succeeds") {
  const Finished top = run_collar({"--help"});
  CHECK(top.code == 0);
  CHECK(top.err.empty());
  const Finished nested = run_collar({"data", "synth", "--help"});
  CHECK(nested.code == 0);
  CHECK_THAT(nested.out, Contains("Usage: collar data synth [OPTIONS] DIR"));
  CHECK_THAT(nested.out, Contains("--classes N"));
}

TEST_CASE("The version says what was built") {
  const Finished finished = run_collar({"--version"});
  CHECK(finished.code == 0);
  CHECK_THAT(finished.out, StartsWith("collar 0."));
  CHECK_THAT(finished.out, Contains("oneDNN") && Contains("CUDA") && Contains("compiler"));
}

TEST_CASE("Mistakes name the nearest word and exit with 2") {
  const Finished verb = run_collar({"lunch"});
  CHECK(verb.code == 2);
  CHECK_THAT(verb.err, StartsWith("collar: error: ") && Contains("did you mean launch?"));
  const Finished option = run_collar({"data", "synth", "--clases", "3", "x"});
  CHECK(option.code == 2);
  CHECK_THAT(option.err, Contains("--clases") && Contains("did you mean --classes?"));
  const Finished value = run_collar({"data", "synth", "--classes", "three", "x"});
  CHECK(value.code == 2);
  CHECK_THAT(value.err, Contains("--classes") && Contains("three"));
  const Finished missing = run_collar({"data", "synth"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, Contains("DIR is required"));
}

TEST_CASE("env describes the machine as text and as JSON") {
  const Finished text = run_collar({"env"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("isa") && Contains("onednn") && Contains("affinity"));
  const Finished machine = run_collar({"env", "--json"});
  const auto json = nlohmann::json::parse(machine.out);
  CHECK(json["cpu"]["usable"].get<int>() >= 1);
  CHECK(json["memory"]["total_bytes"].get<double>() > 1e8);
  CHECK(json["libraries"].contains("cuda"));
}

TEST_CASE("env never shows the token of a job") {
  const Finished finished = run_collar({"env"}, {{"COLLAR_JOB_TOKEN", "secret-of-the-job"}});
  CHECK(finished.out.find("secret") == std::string::npos);
}

TEST_CASE("A variable that is misspelt gets a line with the one that was meant") {
  const auto warnings = [](const collar::apps::Variables& set) {
    return run_collar({"env"}, set).err;
  };
  CHECK(warnings({{"COLLAR_IMG_SIZ", "32"}}) ==
        "collar: warning: COLLAR_IMG_SIZ is no variable that is read here; did you mean "
        "COLLAR_IMG_SIZE?\n");
  CHECK_THAT(warnings({{"COLLAR_BATCHSIZE", "8"}}), Contains("did you mean COLLAR_BATCH_SIZE?"));
  CHECK_THAT(warnings({{"COLLAR_JOINTIMEOUT", "8"}}), Contains("mean COLLAR_JOIN_TIMEOUT?"));
  CHECK(warnings({{"COLLAR_IMG_SIZE", "32"}, {"COLLAR_ALGO", ""}, {"COLLAR_HOME", "x"}}).empty());
  CHECK(warnings({{"COLLAR_IMG_SIZ", "32"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}).empty());
}

TEST_CASE("A reader that leaves is no error, a full disk is one") {
  const auto in_shell = [](const std::string& line) {
    return collar::test::RunningProgram({"/bin/bash", "-c", line, COLLAR_PROGRAM}).wait();
  };
  CHECK(in_shell("\"$0\" env | true; exit ${PIPESTATUS[0]}").code == 0);
  const Finished full = in_shell("\"$0\" env >/dev/full");
  CHECK(full.code == 7);
  CHECK_THAT(full.err, Contains("stdout") && Contains("No space"));
}

TEST_CASE("Waiting threads of OpenMP give their CPU away, unless the user says otherwise") {
  const auto variables = [](const collar::apps::Variables& set) {
    const Finished finished = run_collar({"env", "--json"}, set);
    return nlohmann::json::parse(finished.out)["variables"];
  };
  CHECK(variables({})["GOMP_SPINCOUNT"] == "1000");
  CHECK(variables({{"GOMP_SPINCOUNT", "5"}})["GOMP_SPINCOUNT"] == "5");
  CHECK_FALSE(variables({{"OMP_WAIT_POLICY", "active"}}).contains("GOMP_SPINCOUNT"));
  const Finished launched =
      run_collar({"launch", "-n", "1", "--", "sh", "-c", "echo spin=$GOMP_SPINCOUNT"});
  CHECK_THAT(launched.out, Contains("spin=\n"));
}
