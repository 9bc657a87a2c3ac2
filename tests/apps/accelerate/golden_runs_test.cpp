// SPDX-License-Identifier: Apache-2.0
// Whole training runs beside those of accelerate, PyTorch and timm: the same photos, the same
// order, the same learning rates, losses and predictions on 1, 2 and 4 ranks
// (golden/README-models.md, section 6).
#include <catch2/catch.hpp>
#include <set>

#include "tests/apps/accelerate/golden_run.hpp"
#include "tests/apps/support/cached_photos.hpp"
#include "tests/apps/support/thread_accelerators.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using collar::test::CachedPhotos;
using collar::test::Convolutions;
using collar::test::GoldenRun;
using collar::test::Replay;
namespace fs = std::filesystem;

namespace {

/// The photos of all recorded runs.
struct Pets {
  explicit Pets(const fs::path& folder)
      : train(folder / "train", 64), valid(folder / "valid", 64) {}
  CachedPhotos train;
  CachedPhotos valid;
};

Convolutions convolutions_for(const GoldenRun& run) {
  return run.sharp_to_the_end() ? Convolutions::as_users_have_them : Convolutions::direct;
}

/// All logical ranks played by this process.
void check_by_virtual_ranks(const fs::path& file, const Pets& pets) {
  const GoldenRun run(file);
  INFO(run.name());
  Accelerator accelerator(accelerator_options(run, run.ranks(), convolutions_for(run)));
  CHECK(differences(run, replay(run, accelerator, pets.train, pets.valid)) == "");
}

/// Each rank a thread with an accelerator of its own.
void check_by_threads(const fs::path& file, const Pets& pets) {
  const GoldenRun run(file);
  INFO(run.name());
  std::vector<Replay> replays(static_cast<std::size_t>(run.ranks()));
  test::threads_with_accelerators(run.ranks(), accelerator_options(run, 1, convolutions_for(run)),
                                  [&](Accelerator& accelerator) {
                                    replays[static_cast<std::size_t>(accelerator.process_index())] =
                                        replay(run, accelerator, pets.train, pets.valid);
                                  });
  for (std::size_t rank = 1; rank < replays.size(); ++rank) replays[0].merge(replays[rank]);
  CHECK(differences(run, replays[0]) == "");
}

/// All recorded runs, by name.
std::vector<fs::path> recorded_runs(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "data.json") files.insert(entry.path());
  }
  return {files.begin(), files.end()};
}

/// A data set of as many photos, none of which is looked at.
class Numbers final : public data::Dataset {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  data::Image load(std::int64_t) const override { return data::Image({1, 1}); }
  std::int64_t label(std::int64_t) const override { return 0; }
  std::string name(std::int64_t index) const override { return std::to_string(index); }
  const std::vector<std::string>& classes() const override { return classes_; }
  const data::Pipeline& pipeline() const override { return pipeline_; }

 private:
  std::int64_t size_;
  std::vector<std::string> classes_{"all"};
  data::Pipeline pipeline_{data::Resize(1, 1)};
};

}  // namespace

TEST_CASE("The photos of the recorded runs become the same bytes") {
  REQUIRE_SHARED(golden, "golden/runs/data.json");
  REQUIRE_SHARED(folder, "data/pets");
  const nlohmann::json recorded = test::read_json(golden);
  for (const std::string split : {"train", "valid"}) {
    const CachedPhotos photos(folder / split, 64);
    const nlohmann::json& images = recorded.at(split).at("images");
    REQUIRE(photos.size() == static_cast<std::int64_t>(images.size()));
    Sha256 all;
    for (std::int64_t i = 0; i < photos.size(); ++i) {
      const auto interleaved = photos.image(i).bytes();
      std::vector<std::uint8_t> planar;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        for (std::size_t at = channel; at < interleaved.size(); at += 3)
          planar.push_back(interleaved[at]);
      }
      const nlohmann::json& image = images.at(static_cast<std::size_t>(i));
      INFO(photos.name(i));
      CHECK(fs::relative(photos.path(i), folder).generic_string() == image.at("path"));
      CHECK(photos.label(i) == image.at("label").get<std::int64_t>());
      CHECK(test::sha256_of(planar).substr(0, 16) == image.at("sha256"));
      all.update(std::as_bytes(std::span(planar)));
    }
    CHECK(to_hex(all.finish()) == recorded.at(split).at("sha256"));
  }
}

TEST_CASE("Every recorded run has our order of samples and our learning rates, to its end") {
  REQUIRE_SHARED(golden, "golden/runs");
  const Numbers photos(296);
  for (const fs::path& file : recorded_runs(golden)) {
    const GoldenRun run(file);
    INFO(run.name());
    Accelerator accelerator(accelerator_options(run, run.ranks(), Convolutions::direct));
    const Replay ours = replay_without_model(run, accelerator, photos);
    CHECK(ours.batches.size() == run.steps().size() * static_cast<std::size_t>(run.ranks()));
    test::Comparison comparison(run);
    comparison.steps(ours);
    comparison.rate("after the last step", *ours.rate_after_last_step, run.rate_after_last_step());
    CHECK(comparison.text() == "");
  }
}

TEST_CASE("Frozen runs are accelerate's to the last prediction and statistic") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  const Pets pets(folder);
  for (const char* name : {"p1_inorder", "p1_shuffle", "p2_shuffle", "p4_inorder", "p4_shuffle"})
    check_by_virtual_ranks(golden / fmt::format("resnet18d_frozen_{}.json", name), pets);
}

TEST_CASE("Full runs with gentle steps are accelerate's to the last parameter") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  const Pets pets(folder);
  for (const char* name : {"p1_shuffle_gentle", "p2_shuffle_sgd_accum2_clip_gentle"})
    check_by_virtual_ranks(golden / fmt::format("resnet18d_damped_full_{}.json", name), pets);
}

TEST_CASE("Full runs with large steps are accelerate's until rounding takes over") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  const Pets pets(folder);
  for (const char* name : {"p1_inorder", "p1_shuffle_accum2_clip", "p1_shuffle_sgd", "p2_shuffle",
                           "p2_shuffle_accum2_clip", "p4_inorder"})
    check_by_virtual_ranks(golden / fmt::format("resnet18d_full_{}.json", name), pets);
}

TEST_CASE("Ranks of their own give accelerate's runs too") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  const Pets pets(folder);
  for (const char* name : {"frozen_p2_inorder", "full_p2_shuffle_accum2_clip", "frozen_p4_shuffle",
                           "damped_full_p4_shuffle_sgd_gentle"})
    check_by_threads(golden / fmt::format("resnet18d_{}.json", name), pets);
}

TEST_CASE("All recorded runs of resnet18d are ours") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  REQUIRE_FULL_TESTS();
  const Pets pets(folder);
  for (const fs::path& file : recorded_runs(golden)) {
    if (!file.filename().native().starts_with("resnet18d")) continue;
    check_by_virtual_ranks(file, pets);
    if (GoldenRun(file).ranks() > 1) check_by_threads(file, pets);
  }
}

TEST_CASE("All recorded runs of resnet50d are ours") {
  REQUIRE_SHARED(golden, "golden/runs");
  REQUIRE_SHARED(folder, "data/pets");
  REQUIRE_FULL_TESTS();
  const Pets pets(folder);
  for (const fs::path& file : recorded_runs(golden)) {
    if (file.filename().native().starts_with("resnet50d")) check_by_virtual_ranks(file, pets);
  }
}
