// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/pet_folder.hpp"

#include <fmt/format.h>

#include <system_error>

#include "apps/synth/picture_file.hpp"
#include "apps/synth/portrait.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps::synth {
namespace {

namespace fs = std::filesystem;

constexpr int kMostPhotos = 100'000;  // of a class

void check(const char* name, int value, int least, int most) {
  if (value < least || value > most) {
    throw UsageError(fmt::format("{}: expected {} to {}, got {}", name, least, most, value));
  }
}

void check_usable(const fs::path& folder, bool force) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) {
    throw DataError(fmt::format("{} is not a folder", folder.string()));
  }
  const bool empty = fs::is_empty(folder, error);
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  if (!empty && !force) {
    throw DataError(
        fmt::format("{} is not empty: choose another folder, or add --force to write into it",
                    folder.string()));
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DataError(fmt::format("cannot make {}: {}", folder.string(), error.message()));
}

}  // namespace

PetFolder write_pet_folder(const fs::path& folder, const PetFolderOptions& options,
                           const std::function<void(int, int)>& on_photo) {
  check("classes", options.classes, 1, kBreeds);
  check("train", options.train, 0, kMostPhotos);
  check("valid", options.valid, 0, kMostPhotos);
  check_usable(folder, options.force);

  struct Part {
    const char* name;
    int photos;
  };
  const int all = options.classes * (options.train + options.valid);
  PetFolder result;
  for (int c = 0; c < options.classes; ++c) result.classes.push_back(name_of(breed(c)));
  std::uint64_t part_number = 0;
  for (const Part& part : {Part{"train", options.train}, Part{"valid", options.valid}}) {
    for (int c = 0; c < options.classes; ++c) {
      const std::string& name = result.classes[static_cast<std::size_t>(c)];
      make_folder(folder / part.name / name);
      for (int k = 0; k < part.photos; ++k) {
        const std::uint64_t sample = (part_number << 48) | (static_cast<std::uint64_t>(c) << 32) |
                                     static_cast<std::uint64_t>(k);
        const Picture picture = portrait(breed(c), options.seed, sample);
        const bool png = k % 10 == 9;
        const std::string bytes = png ? encode_png(picture) : encode_jpeg(picture, 80 + k % 4 * 5);
        write_file(folder / part.name / name /
                       fmt::format("{}_{:03}.{}", name, k + 1, png ? "png" : "jpg"),
                   bytes);
        result.bytes += bytes.size();
        ++result.photos;
        if (on_photo) on_photo(result.photos, all);
      }
    }
    ++part_number;
  }
  return result;
}

}  // namespace collar::apps::synth
