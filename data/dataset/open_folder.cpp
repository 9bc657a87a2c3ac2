// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/open_folder.hpp"

#include <algorithm>
#include <array>

namespace collar::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Images in the folder itself, and no visible folder beside them.
bool is_flat(const fs::path& folder) {
  std::error_code error;
  bool images = false;
  for (fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    if (it->path().filename().native().starts_with('.')) continue;
    if (is_folder(it->path())) return false;
    images |= has_image_extension(it->path());
  }
  return images;
}

}  // namespace

LabelledFiles scan_folder(const fs::path& folder) {
  for (const fs::path& candidate : {folder / "images", folder}) {
    if (is_folder(candidate) && is_flat(candidate)) return scan_flat_folder(candidate);
  }
  return scan_class_folders(folder);
}

OpenedFolder open_folder(const fs::path& folder) {
  if (!is_folder(folder / "train")) return {scan_folder(folder), std::nullopt};
  OpenedFolder result{scan_folder(folder / "train"), std::nullopt};
  constexpr std::array kValidation{"valid", "val", "validation", "test"};
  const auto found =
      std::ranges::find_if(kValidation, [&](const char* name) { return is_folder(folder / name); });
  if (found != kValidation.end()) {
    result.valid = with_classes(scan_folder(folder / *found), result.train.classes);
  }
  return result;
}

}  // namespace collar::data
