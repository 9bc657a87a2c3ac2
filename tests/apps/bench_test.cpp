// SPDX-License-Identifier: Apache-2.0
// `collar bench`: what it reports hangs together. How large the figures are is the machine's
// business.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/support/program.hpp"

using Catch::Matchers::Contains;
using collar::test::Finished;
using collar::test::run_collar;

namespace {

struct Report {
  std::string text;
  nlohmann::json json;
};

Report bench_step(std::vector<std::string> more) {
  const collar::test::TemporaryDirectory folder;
  const std::string file = (folder.path() / "step.json").string();
  std::vector<std::string> arguments{"bench",   "step", "--img-size", "32", "-b",     "2",
                                     "--steps", "3",    "--threads",  "2",  "--json", file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = run_collar(arguments);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return {finished.out, nlohmann::json::parse(collar::test::read_text(file))};
}

double sum_of(const nlohmann::json& parts) {
  double sum = 0;
  for (const auto& [name, value] : parts.items()) sum += value.get<double>();
  return sum;
}

double number(const nlohmann::json& json, const char* key) {
  INFO(key);
  REQUIRE(json.contains(key));
  return json[key].get<double>();
}

}  // namespace

TEST_CASE("bench step measures a whole step, its parts and its convolutions alone") {
  const Report report = bench_step({"--model", "resnet18d"});
  CHECK_THAT(report.text, Contains("img/s, median of 3") && Contains("convolutions alone"));
  const nlohmann::json& json = report.json;
  const double step = number(json, "step_seconds");
  CHECK(number(json, "images_per_second") == Approx(2 / step));
  CHECK(number(json, "images_per_second_best") >= number(json, "images_per_second"));
  CHECK(sum_of(json["kind_seconds"]) == Approx(step).epsilon(0.5));
  CHECK(sum_of(json["phase_seconds"]) == Approx(step).epsilon(0.5));
  CHECK(json["phase_seconds"]["backward"].get<double>() > 0);
  CHECK(json["kind_seconds"]["convolution"].get<double>() > 0);
  CHECK(number(json, "convolutions_alone_images_per_second") ==
        Approx(2 / number(json, "convolutions_alone_seconds")));
  CHECK(number(json, "share_of_convolutions_alone") > 0);
  CHECK(number(json, "peak_gflops") > 0);
  CHECK(number(json, "share_of_peak") > 0);
  CHECK(number(json, "system_allocations") == 0);
  CHECK(number(json, "layout_conversions") <= 1);
  CHECK(number(json, "layout_conversion_bytes") <= 2 * 3 * 32 * 32 * sizeof(float));
  CHECK(sum_of(json["layouts"]) == 22);  // a stem of 3, 8 blocks of 2, shortcuts of 3
}

TEST_CASE("With a frozen backbone the convolutions run forwards only") {
  const Report report = bench_step({"--model", "resnet18", "--freeze", "backbone"});
  CHECK_THAT(report.text, Contains("backbone frozen"));
  // 1.814 billion multiply-adds at 224 px, 49 times fewer here, for 2 images.
  CHECK(number(report.json, "convolution_gflop") == Approx(2 * 2 * 1.814 / 49).epsilon(0.001));
}

TEST_CASE("Mistakes in a benchmark's options exit with 2") {
  CHECK(run_collar({"bench"}).code == 2);
  const Finished model = run_collar({"bench", "step", "--model", "resnet50b"});
  CHECK(model.code == 2);
  CHECK_THAT(model.err, Contains("resnet50b"));
  const Finished freeze = run_collar({"bench", "step", "--freeze", "head"});
  CHECK(freeze.code == 2);
  CHECK_THAT(freeze.err, Contains("backbone"));
  const Finished one = run_collar({"bench", "step", "--img-size", "32", "-b", "1"});
  CHECK(one.code == 2);
  CHECK_THAT(one.err, Contains("a batch is a single photo"));
  const Finished json = run_collar({"bench", "step", "--json", "/no/such/folder/step.json"});
  CHECK(json.code == 2);
  CHECK_THAT(json.err, Contains("/no/such/folder/step.json: No such file"));
}
