// SPDX-License-Identifier: Apache-2.0
// A folder of toy pet photos, laid out as image folders are: train/<class>/, valid/<class>/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace collar::apps::synth {

struct PetFolderOptions {
  int classes = 5;         ///< 1 to kBreeds
  int train = 40;          ///< photos of each class in train/
  int valid = 10;          ///< photos of each class in valid/
  std::uint64_t seed = 1;  ///< same seed, same bytes, on every machine
  bool force = false;      ///< write into a folder that is not empty
};

struct PetFolder {
  std::vector<std::string> classes;
  int photos = 0;
  std::uint64_t bytes = 0;
};

/// Draws and writes the photos; `on_photo` is called with the number done and the number of all.
/// A photo depends on the seed, its part, its class and its number alone: asking for more of them
/// leaves the first ones as they were. Every tenth is a PNG, the others are JPEGs. With `force`,
/// files of the same names are replaced and nothing else is touched.
/// Throws UsageError for numbers out of range, DataError for a folder that cannot be used.
PetFolder write_pet_folder(const std::filesystem::path& folder, const PetFolderOptions& options,
                           const std::function<void(int done, int all)>& on_photo = {});

}  // namespace collar::apps::synth
