// SPDX-License-Identifier: Apache-2.0
// `collar predict` on a model that `collar train` has just made.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/apps/support/trained_run.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using collar::test::Finished;
using collar::test::read_text;
using collar::test::run_collar;
using collar::test::TrainedRun;
using collar::test::write_text;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

/// The image files below a folder, in order of their names.
std::vector<std::string> photos_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("predict names the classes of a photo and of a folder of them") {
  const TrainedRun run;
  const std::vector<std::string> photos = photos_in(run.photos() / "valid");

  const Finished one = run_collar({"predict", run.model(), photos.front(), "-k", "2"});
  REQUIRE(one.code == 0);
  CHECK(std::ranges::count(one.out, '\n') == 3);
  CHECK_THAT(one.out, StartsWith(photos.front() + "\n  ") && Contains(" %  "));

  const Finished folder = run_collar({"predict", run.model(), run.photos() / "valid", "--json"});
  REQUIRE(folder.code == 0);
  const std::vector<json> guesses = json_lines(folder.out);
  REQUIRE(guesses.size() == photos.size());
  int right = 0;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    CHECK(guesses[i].at("photo") == photos[i]);
    const json& classes = guesses[i].at("classes");
    REQUIRE(classes.size() == 3);
    double sum = 0;
    for (const json& guess : classes) sum += guess.at("probability").get<double>();
    CHECK(sum == Approx(1).epsilon(1e-5));
    CHECK(classes[0].at("probability") >= classes[1].at("probability"));
    if (classes[0].at("class") == fs::path(photos[i]).parent_path().filename().string()) ++right;
  }
  CHECK(100.0 * right / 9 == Approx(run.last_epoch().at("top1").get<double>()));
}

TEST_CASE("A photo that cannot be read does not keep the others from being looked at") {
  const TrainedRun run;
  const std::vector<std::string> photos = photos_in(run.photos() / "valid");
  const std::string bytes = read_text(photos.front());
  const fs::path broken = run.photos() / "broken.jpg";
  write_text(broken, bytes.substr(0, 100));
  const Finished finished =
      run_collar({"predict", run.model(), photos[0], broken, "/no/such.jpg", photos[1], "--json"});
  CHECK(finished.code == 3);
  const std::vector<json> guesses = json_lines(finished.out);
  REQUIRE(guesses.size() == 2);
  CHECK(guesses[0].at("photo") == photos[0]);
  CHECK(guesses[1].at("photo") == photos[1]);
  CHECK_THAT(finished.err, Contains("broken.jpg") && Contains("/no/such.jpg") &&
                               Contains("2 of 4 photos could not be read"));

  fs::create_directory(run.photos() / "empty");
  const Finished nothing = run_collar({"predict", run.model(), run.photos() / "empty"});
  CHECK(nothing.code == 3);
  CHECK_THAT(nothing.err, Contains("no photos"));
}

TEST_CASE("Links that lead nowhere and names that are not UTF-8 are no trouble") {
  const TrainedRun run;
  const fs::path folder = run.photos() / "odd";
  fs::create_directory(folder);
  fs::copy_file(photos_in(run.photos() / "valid").front(), folder / "\xff.jpg");
  fs::create_symlink("round.jpg", folder / "round.jpg");
  const Finished odd = run_collar({"predict", run.model(), folder, "--json"});
  CHECK(odd.code == 0);
  const std::vector<json> guesses = json_lines(odd.out);
  REQUIRE(guesses.size() == 1);
  CHECK(guesses[0].at("photo") == (folder / "\uFFFD.jpg").native());
  const Finished round = run_collar({"predict", run.model(), folder / "round.jpg"});
  CHECK(round.code == 3);
  CHECK_THAT(round.err, Contains("round.jpg"));
}

TEST_CASE("A config.json with impossible values is a file error that names them") {
  const TrainedRun run;
  const fs::path file = fs::path(run.model()) / "config.json";
  const json good = json::parse(read_text(file));
  // As timm's models come: what their photos need is said here alone.
  fs::remove(fs::path(run.model()) / "preprocessing.json");
  const auto predict_with = [&](const json& change) {
    json bad = good;
    bad.merge_patch(change);
    write_text(file, bad.dump());
    return run_collar({"predict", run.model(), run.photos() / "valid"});
  };
  CHECK(predict_with(json::object()).code == 0);
  const std::vector<std::pair<std::string, json>> changes{
      {"num_classes", {{"num_classes", -2}}},
      {"num_classes", {{"num_classes", 1'000'000'000'000}}},
      {"crop_pct", {{"pretrained_cfg", {{"crop_pct", 7}}}}},
      {"input_size", {{"pretrained_cfg", {{"input_size", {3, 0, 0}}}}}},
      {"std", {{"pretrained_cfg", {{"std", {1, 0, 1}}}}}},
      {"interpolation 'smooth'", {{"pretrained_cfg", {{"interpolation", "smooth"}}}}}};
  for (const auto& [field, change] : changes) {
    const Finished finished = predict_with(change);
    INFO(field);
    CHECK(finished.code == 4);
    CHECK_THAT(finished.err, Contains(field) && Contains(file.native()));
  }
}

TEST_CASE("What is wrong with preprocessing.json is said with its name, once") {
  const TrainedRun run;
  const fs::path file = fs::path(run.model()) / "preprocessing.json";
  const json good = json::parse(read_text(file));
  json bad = good;
  bad["size"] = 0;
  for (const std::string& text : {std::string("{"), bad.dump(), std::string("{}")}) {
    write_text(file, text);
    const Finished finished = run_collar({"predict", run.model(), run.photos() / "valid"});
    CHECK(finished.code == 4);
    CHECK_THAT(finished.err, StartsWith("collar: error: " + file.native() + ": "));
  }
  fs::remove(file);
  fs::create_directory(file);
  const Finished folder = run_collar({"predict", run.model(), run.photos() / "valid"});
  CHECK(folder.err == "collar: error: " + file.native() + ": is a folder, expected a file\n");
}

TEST_CASE("A checkpoint is no model, but its run has one") {
  const TrainedRun run;
  const fs::path checkpoint = fs::path(run.model()) / "checkpoints" / "step-13.collar";
  fs::create_directories(checkpoint.parent_path());
  write_text(checkpoint, "x");
  const Finished finished = run_collar({"predict", checkpoint, run.photos() / "valid"});
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Contains("give that (" + fs::path(run.model()).native() + ")"));
}

TEST_CASE("Names cannot steer the terminal from an error message either") {
  const Finished finished = run_collar({"predict", "/no/\x1b[31mmodel", "photo.jpg"});
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Contains("\\x1b[31mmodel"));
}

TEST_CASE("A damaged model is a file error") {
  const TrainedRun run;
  const fs::path weights = fs::path(run.model()) / "model.safetensors";
  write_text(weights, read_text(weights).substr(0, 1'000'000));
  const Finished damaged = run_collar({"predict", run.model(), run.photos() / "valid"});
  CHECK(damaged.code == 4);
  CHECK_THAT(damaged.err, Contains("model.safetensors"));
}
