// SPDX-License-Identifier: Apache-2.0
// The toy pets: the same bytes for a seed, different sizes, and no class that its mean colour gives
// away.
#include "apps/synth/pet_folder.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "apps/synth/breed.hpp"
#include "apps/synth/picture_file.hpp"
#include "apps/synth/portrait.hpp"
#include "kernels/core/error.hpp"
#include "tests/apps/support/program.hpp"

using namespace collar::apps::synth;
using collar::DataError;
using collar::UsageError;
using collar::test::read_text;
using collar::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// FNV-1a, so that a picture's pixels can be written down here.
std::uint64_t hash(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t value = 0xCBF29CE484222325u;
  for (const std::uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3u;
  return value;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[entry.path().lexically_relative(folder).string()] = read_text(entry.path());
    }
  }
  return files;
}

std::array<double, 3> mean_color(const Picture& picture) {
  std::array<double, 3> sum{};
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) sum[i % 3] += picture.rgb[i];
  for (double& channel : sum) channel /= static_cast<double>(picture.rgb.size() / 3);
  return sum;
}

double square_distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// What share of new portraits the nearest mean colour of a breed's other portraits names right,
/// when `changed` has had its way with each. Chance is a fifth.
double share_told_by_mean_color(const std::function<Picture(Picture, int breed)>& changed) {
  constexpr int kClasses = 5;
  constexpr std::uint64_t kTrain = 30;
  constexpr std::uint64_t kValid = 20;
  const auto color_of = [&](int c, std::uint64_t number) {
    return mean_color(
        changed(portrait(breed(c), 1, 1000 * static_cast<std::uint64_t>(c) + number), c));
  };
  std::array<std::array<double, 3>, kClasses> centers{};
  for (int c = 0; c < kClasses; ++c) {
    for (std::uint64_t k = 0; k < kTrain; ++k) {
      const auto color = color_of(c, k);
      for (std::size_t i = 0; i < 3; ++i)
        centers[static_cast<std::size_t>(c)][i] += color[i] / kTrain;
    }
  }
  int right = 0;
  for (int c = 0; c < kClasses; ++c) {
    for (std::uint64_t k = 0; k < kValid; ++k) {
      const auto color = color_of(c, 500 + k);
      const auto best = std::min_element(centers.begin(), centers.end(), [&](auto& a, auto& b) {
        return square_distance(a, color) < square_distance(b, color);
      });
      right += best - centers.begin() == c;
    }
  }
  return static_cast<double>(right) / (kClasses * kValid);
}

}  // namespace

TEST_CASE("A portrait is a pure function of breed, seed and number, the same on every machine") {
  const Picture picture = portrait(breed(0), 1, 0);
  CHECK(picture.rgb == portrait(breed(0), 1, 0).rgb);
  CHECK(picture.rgb != portrait(breed(0), 2, 0).rgb);
  CHECK(picture.rgb != portrait(breed(0), 1, 1).rgb);
  CHECK(picture.rgb.size() == static_cast<std::size_t>(picture.width * picture.height * 3));
  CHECK(hash(picture.rgb) == 0xebc119f3a1cc115du);
  CHECK(hash(portrait(breed(9), 7, 3).rgb) == 0xeb3df755240e2fa6u);
}

TEST_CASE("Every breed has a name of its own") {
  std::set<std::string> names;
  for (int i = 0; i < kBreeds; ++i) names.insert(name_of(breed(i)));
  CHECK(names.size() == kBreeds);
  CHECK(name_of(breed(0)) == "Tiger_Lynxkin");
}

TEST_CASE(
    "A pet folder has the asked-for files, sizes vary, and more photos leave the first ones") {
  const TemporaryDirectory temporary;
  const PetFolder made =
      write_pet_folder(temporary.path() / "a", {.classes = 2, .train = 10, .valid = 2});
  CHECK(made.photos == 24);
  CHECK(made.classes == std::vector<std::string>{"Tiger_Lynxkin", "Freckle_Lopling"});
  const auto first = contents(temporary.path() / "a");
  CHECK(first.size() == 24);
  CHECK(first.at("train/Tiger_Lynxkin/Tiger_Lynxkin_001.jpg").starts_with("\xFF\xD8\xFF"));
  CHECK(first.at("train/Freckle_Lopling/Freckle_Lopling_010.png").starts_with("\x89PNG"));

  write_pet_folder(temporary.path() / "b", {.classes = 3, .train = 11, .valid = 2});
  const auto second = contents(temporary.path() / "b");
  CHECK(second.size() == 39);
  for (const auto& [name, bytes] : first) {
    INFO(name);
    CHECK((second.at(name) == bytes));
  }
  std::set<std::pair<int, int>> sizes;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Picture picture = portrait(breed(0), 1, i);
    sizes.insert({picture.width, picture.height});
  }
  CHECK(sizes.size() > 15);
}

TEST_CASE("A folder that is not empty is left alone unless it is forced") {
  const TemporaryDirectory temporary;
  collar::test::write_text(temporary.path() / "mine.txt", "precious");
  PetFolderOptions options{.classes = 1, .train = 1, .valid = 0};
  CHECK_THROWS_WITH(write_pet_folder(temporary.path(), options), Catch::Contains("not empty"));
  CHECK(contents(temporary.path()).size() == 1);
  options.force = true;
  write_pet_folder(temporary.path(), options);
  CHECK(contents(temporary.path()).size() == 2);
  CHECK(read_text(temporary.path() / "mine.txt") == "precious");
  CHECK_THROWS_AS(write_pet_folder(temporary.path() / "mine.txt", options), DataError);
  CHECK_THROWS_AS(write_pet_folder("/proc/nothing", options), DataError);
  options.classes = kBreeds + 1;
  CHECK_THROWS_AS(write_pet_folder(temporary.path(), options), UsageError);
}

TEST_CASE("The mean colour does not tell the breeds apart") {
  CHECK(share_told_by_mean_color([](const Picture& picture, int) { return picture; }) < 0.4);
  // It would if the breeds had colours of their own.
  CHECK(share_told_by_mean_color([](Picture picture, int breed) {
          for (std::size_t i = 0; i < picture.rgb.size(); i += 3) {
            picture.rgb[i] = static_cast<std::uint8_t>(picture.rgb[i] / 4 + 48 * breed);
          }
          return picture;
        }) > 0.9);
}

TEST_CASE("An encoder says what it cannot do") {
  CHECK_THROWS_AS(encode_jpeg(Picture{}, 90), DataError);
  CHECK_THROWS_AS(Canvas(0, 10), UsageError);
}

TEST_CASE("collar data synth writes a folder and says so") {
  const TemporaryDirectory temporary;
  const auto folder = (temporary.path() / "pets").string();
  const auto made = collar::test::run_collar(
      {"data", "synth", folder, "--classes", "2", "--train=2", "--valid", "1", "--seed", "3"});
  CHECK(made.code == 0);
  CHECK_THAT(made.out, Catch::Contains("6 photos of 2 breeds"));
  const auto again = collar::test::run_collar({"data", "synth", folder});
  CHECK(again.code == 3);
  CHECK_THAT(again.err, Catch::Contains("--force"));
  const auto negative = collar::test::run_collar({"data", "synth", folder + "2", "--seed", "-1"});
  CHECK(negative.code == 2);
  CHECK_THAT(negative.err, Catch::Contains("--seed: expected a whole number of at least 0"));
}
