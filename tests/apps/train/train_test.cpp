// SPDX-License-Identifier: Apache-2.0
// `collar train` as its user sees it: what it says where, what it starts from, what it refuses.
#include <catch2/catch.hpp>
#include <memory>

#include "apps/build_info.hpp"
#include "apps/launch/reserved_port.hpp"
#include "engine/io/checkpoint.hpp"
#include "kernels/runtime/isa.hpp"
#include "tests/apps/support/small_runs.hpp"

using Catch::Matchers::Contains;
using collar::test::Finished;
using collar::test::read_text;
using collar::test::run_collar;
using collar::test::RunningProgram;
using collar::test::same;
using collar::test::SmallRuns;
using collar::test::operator+;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Options = std::vector<std::string>;

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

/// The steps that have a line in metrics.jsonl and the norms of their gradients.
std::vector<std::int64_t> logged_steps(const SmallRuns& runs, const std::string& name) {
  std::vector<std::int64_t> steps;
  for (const json& line : runs.metrics(name)) {
    if (line.contains("train_loss")) continue;
    CHECK(line.at("grad_norm").get<double>() > 0);
    steps.push_back(line.at("step"));
  }
  return steps;
}

}  // namespace

TEST_CASE("Results go to stdout, the rest to stderr") {
  const SmallRuns runs;
  const Finished finished = runs.train("run", {"--epochs", "2", "--max-steps", "12"});
  REQUIRE(finished.code == 0);
  CHECK_THAT(finished.out, Catch::StartsWith("epoch 1/2: train loss ") && Contains("top-1") &&
                               Contains("\ndone: 12 steps") && Contains("next: collar eval"));
  CHECK_THAT(finished.out, !Contains("step 1/"));
  CHECK_THAT(finished.err, Contains("42 photos of 3 classes") && Contains("epoch 1/2  step 1/11"));
  CHECK_THAT(finished.err, !Contains("valid loss"));
}

TEST_CASE("With --json every line of stdout is JSON") {
  const SmallRuns runs;
  const Finished finished = runs.train("run", {"--json", "-n", "2"});
  REQUIRE(finished.code == 0);
  const std::vector<json> lines = json_lines(finished.out);
  REQUIRE(lines.size() == 8);  // six steps, an epoch, the end
  CHECK(lines[0].at("step") == 1);
  CHECK(lines[6].contains("valid_loss"));
  CHECK(lines[7].at("result") == "finished");
  CHECK(lines[7].at("run") == runs.run("run").native());
}

TEST_CASE("A reader of the results who leaves does not end the training") {
  const SmallRuns runs;
  Options command{"/bin/bash", "-c", "\"$@\" | true; exit ${PIPESTATUS[0]}", "bash"};
  const Finished finished = RunningProgram(command + runs.command("run", {"--json"})).wait();
  CHECK(finished.code == 0);
  CHECK_FALSE(runs.model("run").empty());
}

TEST_CASE("A screen that is gone ends neither the training nor an error message") {
  const SmallRuns runs;
  const auto in_shell = [](const std::string& redirection, const Options& command) {
    const Options shell{"/bin/bash", "-c", "\"$@\" " + redirection, "bash"};
    return RunningProgram(shell + command).wait().code;
  };
  CHECK(in_shell("2>/dev/full", runs.command("full", {"--max-steps", "1"})) == 0);
  CHECK(in_shell("2>&-", runs.command("closed", {"--max-steps", "1", "-n", "2"})) == 0);
  CHECK_FALSE(runs.model("closed").empty());
  CHECK(in_shell("2>&-", {COLLAR_PROGRAM, "trian"}) == 2);
  // Results are another matter, but a reader that has seen enough is none.
  const Options command = runs.command("json", {"--max-steps", "1", "--json"});
  CHECK(in_shell(">/dev/full", command) == 7);
  CHECK_FALSE(runs.model("json").empty());
  CHECK(in_shell("--force | true; exit ${PIPESTATUS[0]}", command) == 0);
}

TEST_CASE("Ranks that were given different options say which") {
  const SmallRuns runs;
  const collar::apps::ReservedPort port;
  const auto rank = [&](const char* number, const Options& options, const char* instructions) {
    return std::make_unique<RunningProgram>(
        runs.command("run", options),
        collar::apps::Variables{{"RANK", number},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", std::to_string(port.port())},
                                {"COLLAR_ISA", instructions}});
  };
  const auto check_that_both_say = [](RunningProgram& first, RunningProgram& second,
                                      const auto& matcher) {
    for (RunningProgram* program : {&first, &second}) {
      const Finished finished = program->wait();
      CHECK(finished.code == 6);
      CHECK_THAT(finished.err, matcher);
    }
  };
  check_that_both_say(*rank("0", {"--lr", "0.1"}, "baseline"),
                      *rank("1", {"--lr", "0.2"}, "baseline"),
                      Contains("--lr") && Contains("0.1") && Contains("0.2"));
  if (collar::hardware_isa() != collar::Isa::baseline) {
    check_that_both_say(*rank("0", {}, "baseline"), *rank("1", {}, "avx2"),
                        Contains("instructions") && Contains("baseline") && Contains("avx2"));
  }
  CHECK_FALSE(fs::exists(runs.run("run")));
}

TEST_CASE("A run is kept out of its photos") {
  const SmallRuns runs;
  const auto into = [&](const fs::path& photos, const fs::path& run) {
    const Finished finished = run_collar({"train", photos, "-o", run, "--max-steps", "1"});
    INFO(finished.err);
    CHECK(Contains("would be taken for a class").match(finished.err) == (finished.code == 2));
    return finished.code;
  };
  const fs::path train = runs.photos() / "train";
  CHECK(into(runs.photos(), runs.photos()) == 2);
  CHECK(into(runs.photos(), train / "run") == 2);
  CHECK(into(train, train / "run") == 2);
  CHECK(into(fs::relative(train), fs::relative(train) / "run") == 2);
  CHECK_FALSE(fs::exists(train / "run"));
}

TEST_CASE("The first step, every tenth and the last of an epoch are logged") {
  const SmallRuns runs;
  runs.must_train("run", {"--log-interval", "10", "--epochs", "2"});
  CHECK(logged_steps(runs, "run") == std::vector<std::int64_t>{1, 10, 11, 20, 22});
  runs.must_train("few", {"--log-interval", "10", "--batch-size", "14"});
  CHECK(logged_steps(runs, "few") == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("Training without oneDNN says that it is slow") {
  const SmallRuns runs;
  const Finished finished = runs.train("run", {"--max-steps", "1"});
  const bool slow = !collar::apps::build_info().onednn.starts_with("on");
  CHECK(Contains("slow: oneDNN is off").match(finished.err) == slow);
}

TEST_CASE("A dry run shows the plan and touches nothing") {
  const SmallRuns runs;
  const Options recipe{"--dry-run", "--epochs", "2", "--grad-accum-steps", "2"};
  const Finished text = runs.train("run", recipe + Options{"--transform", "timm"});
  REQUIRE(text.code == 0);
  CHECK_THAT(text.out, Contains("epochs = 2") && Contains("hflip = 0.5") &&
                           Contains("parameters, ") &&
                           Contains("2 epochs of 6 steps on 1 rank: 12 steps of 8 images") &&
                           Contains("learning rate 0 at first, 0.001 at most"));
  const Finished machine = runs.train("run", recipe + Options{"--json", "-n", "2"});
  REQUIRE(machine.code == 0);
  const json plan = json::parse(machine.out);
  CHECK(plan.at("total_steps") == 6);
  CHECK(plan.at("logical_ranks") == 2);
  CHECK(plan.at("train_photos") == 42);
  CHECK_FALSE(fs::exists(runs.run("run")));
}

TEST_CASE("Pretrained weights are looked for in the local cache, or it is said how to get them") {
  const SmallRuns runs;
  const fs::path home = runs.run("home");
  const auto train = [&](const std::string& name, const Options& options) {
    return runs.train(name, options, {{"HF_HOME", home.native()}, {"HF_HUB_CACHE", ""}});
  };
  const Finished missing = train("missing", {"--pretrained"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err,
             Contains("timm/resnet18d.ra2_in1k model.safetensors") && Contains("--weights"));
  CHECK_FALSE(fs::exists(runs.run("missing")));

  runs.must_train("source", {"--max-steps", "1"});
  const fs::path snapshot = home / "hub" / "models--timm--resnet18d.ra2_in1k/snapshots/0123abcd";
  fs::create_directories(snapshot);
  fs::copy_file(runs.run("source") / "model.safetensors", snapshot / "model.safetensors");
  const Options frozen{"--freeze", "backbone", "--max-steps", "1"};
  const Finished found = train("found", frozen + Options{"--pretrained"});
  REQUIRE(found.code == 0);
  CHECK_THAT(found.err, Contains("weights from " + (snapshot / "model.safetensors").native()) &&
                            !Contains("random values"));
  const std::string source = (runs.run("source") / "model.safetensors").native();
  runs.must_train("given", frozen + Options{"--weights", source});
  CHECK(same(runs.model("given"), runs.model("found")));
}

TEST_CASE("Weights for other classes keep their backbone, and the run says so") {
  const SmallRuns runs;
  runs.must_train("source", {"--max-steps", "1", "--num-classes", "5"});
  const Finished finished = runs.train(
      "run",
      {"--max-steps", "1", "--weights", (runs.run("source") / "model.safetensors").native()});
  REQUIRE(finished.code == 0);
  CHECK_THAT(finished.err,
             Contains("fc.weight, fc.bias left out: the file has 5 classes, this run 3"));
}

TEST_CASE("Weights as torch.save() writes them are refused with the way to convert them") {
  const SmallRuns runs;
  const fs::path file = runs.run("resnet18d.pth");
  collar::test::write_text(file, std::string("PK\3\4archive/data.pkl", 20));
  const Finished finished = runs.train("run", {"--weights", file.native()});
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Contains("a file of PyTorch") &&
                               Contains("torch.load(\"" + file.native() + "\"") &&
                               Contains("resnet18d.safetensors\")\n"));
}

TEST_CASE("A number of ranks that a launched job does not have gets one note") {
  const SmallRuns runs;
  Options command = runs.arguments("run", {"-n", "3", "--max-steps", "1"});
  command.insert(command.begin(), {"launch", "-n", "2", "--tee", COLLAR_PROGRAM});
  const Finished finished = run_collar(command);
  REQUIRE(finished.code == 0);
  const std::string note = "note: -n 3 says nothing here: this job has 2 ranks already";
  const auto at = finished.err.find(note);
  REQUIRE(at != std::string::npos);
  CHECK(finished.err.find(note, at + 1) == std::string::npos);
}

TEST_CASE("A backbone that is frozen at random values is warned of") {
  const SmallRuns runs;
  const Finished finished = runs.train("run", {"--max-steps", "1", "--freeze", "backbone"});
  REQUIRE(finished.code == 0);
  CHECK_THAT(finished.err, Contains("warning: the backbone is frozen at random values"));
}

TEST_CASE("bf16 is refused where the CPU does not multiply it") {
  const SmallRuns runs;
  const Finished finished = runs.train("run", {"--precision", "bf16"}, {{"COLLAR_ISA", "avx2"}});
  CHECK(finished.code == 7);
  CHECK_THAT(finished.err, Contains("AVX512_BF16") && Contains("use f32"));
}

TEST_CASE("Training in bf16 gives another model, and the same on two ranks as on one") {
  if (collar::detect_isa() != collar::Isa::avx512_bf16) COLLAR_SKIP("this CPU has no bf16");
  const SmallRuns runs;
  const Options recipe{"--max-steps", "3", "--precision", "bf16"};
  runs.must_train("f32", {"--max-steps", "3"});
  runs.must_train("bf16", recipe + Options{"--virtual-ranks", "2"});
  runs.must_train("two", recipe + Options{"-n", "2"});
  CHECK_FALSE(same(runs.model("bf16"), runs.model("f32")));
  CHECK(same(runs.model("two"), runs.model("bf16")));
}

TEST_CASE("A path that is not UTF-8 ends no run") {
  const SmallRuns runs;
  const fs::path photos = runs.run("pets-\xff");
  fs::copy(runs.photos(), photos, fs::copy_options::recursive);
  const fs::path run = runs.run("run-\xff");
  const Options command{"train",    photos, "--model",      "resnet18d", "--img-size",
                        "32",       "-b",   "14",           "--threads", "1",
                        "--epochs", "1",    "--save-every", "1steps",    "--json"};
  const Finished finished = run_collar(command + Options{"-o", run});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  CHECK(json_lines(finished.out).back().at("run") == runs.run("run-\uFFFD").native());
  const Finished again = run_collar(command + Options{"-o", run, "--resume", "auto"});
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("nothing to do"));
}

TEST_CASE("A checkpoint tells how photos were prepared and what the classes are") {
  const SmallRuns runs;
  runs.must_train("run", {"--max-steps", "1", "--save-every", "epoch", "--transform", "timm",
                          "--mean", "0.4,0.5,0.6"});
  const json state = collar::CheckpointFile::open(runs.checkpoint("run", 1)).state();
  CHECK(state.at("preprocessing") ==
        collar::test::read_json(runs.run("run") / "preprocessing.json"));
  CHECK(state.at("preprocessing").at("mean") == json{0.4, 0.5, 0.6});
  CHECK(state.at("classes").size() == 3);
}
