// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/open_folder.hpp"

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

std::optional<fs::path> validation_folder(const fs::path& folder) {
  if (!is_folder(folder / "train")) return std::nullopt;
  for (const char* name : {"valid", "val", "validation", "test"}) {
    if (is_folder(folder / name)) return folder / name;
  }
  return std::nullopt;
}

OpenedFolder open_folder(const fs::path& folder) {
  if (!is_folder(folder / "train")) return {scan_folder(folder), std::nullopt};
  OpenedFolder result{scan_folder(folder / "train"), std::nullopt};
  if (const auto valid = validation_folder(folder))
    result.valid = with_classes(scan_folder(*valid), result.train.classes);
  return result;
}

}  // namespace collar::data
