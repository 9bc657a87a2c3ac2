// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/labelled_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/random.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

namespace fs = std::filesystem;
using FolderId = std::pair<dev_t, ino_t>;

void require_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    throw DataError(fmt::format("{}: there is no such folder", folder.native()));
  }
  if (status.type() != fs::file_type::directory) {
    throw DataError(fmt::format("{}: {}", folder.native(),
                                fs::status_known(status) ? "not a folder" : error.message()));
  }
}

/// The entries of a folder in byte order of their names, without the hidden ones, which are
/// counted.
std::vector<fs::directory_entry> visible_entries(const fs::path& folder, std::int64_t& hidden) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    if (it->path().filename().native().starts_with('.')) {
      ++hidden;
    } else {
      entries.push_back(*it);
    }
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.native(), error.message()));
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.path().native(); });
  return entries;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code unreadable;
  return entry.is_directory(unreadable);
}

/// Appends the images below `folder`, which lies inside the folders `ancestors`.
void collect_images(const fs::path& folder, std::vector<FolderId>& ancestors,
                    std::vector<fs::path>& images, std::int64_t& hidden) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return;  // removed, or a link to nothing
  const FolderId id{status.st_dev, status.st_ino};
  if (std::ranges::find(ancestors, id) != ancestors.end()) return;  // a link back up
  ancestors.push_back(id);
  for (const fs::directory_entry& entry : visible_entries(folder, hidden)) {
    if (is_folder(entry)) {
      collect_images(entry.path(), ancestors, images, hidden);
    } else if (has_image_extension(entry.path())) {
      images.push_back(entry.path());
    }
  }
  ancestors.pop_back();
}

/// As Python sorts (folder, file name): by the text of the folder's path first.
bool folder_then_name(const fs::path& a, const fs::path& b) {
  const auto key = [](const fs::path& path) {
    return std::pair(path.parent_path().native(), path.filename().native());
  };
  return key(a) < key(b);
}

bool is_utf8(const std::string& text) {
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

/// Models, checkpoints and logs keep the names of classes as JSON, which has room for UTF-8 only.
void require_utf8(const fs::path& root, const std::vector<std::string>& classes) {
  std::vector<std::string> refused;
  for (const std::string& name : classes) {
    if (!is_utf8(name)) refused.push_back(fmt::format("{:?}", name));
  }
  if (!refused.empty()) {
    throw DataError(fmt::format("{}: the names of the classes {} are not UTF-8; rename them",
                                root.native(), fmt::join(refused, ", ")));
  }
}

std::string extensions() {
  return fmt::format("{}", fmt::join(kImageExtensions, " "));
}

/// As many as a message can take.
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t kMost = 10;
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("…");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool has_image_extension(const fs::path& path) {
  std::string extension = path.extension().native();
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(kImageExtensions, extension) != kImageExtensions.end();
}

LabelledFiles scan_class_folders(const fs::path& root) {
  require_folder(root);
  LabelledFiles result;
  result.root = root;
  std::vector<std::string> empty_classes;
  for (const fs::directory_entry& entry : visible_entries(root, result.hidden)) {
    if (!is_folder(entry)) continue;
    std::vector<FolderId> ancestors;
    std::vector<fs::path> images;
    collect_images(entry.path(), ancestors, images, result.hidden);
    std::ranges::sort(images, folder_then_name);
    const auto label = static_cast<std::int64_t>(result.classes.size());
    result.classes.push_back(entry.path().filename().native());
    if (images.empty()) empty_classes.push_back(result.classes.back());
    for (fs::path& image : images) result.files.push_back({std::move(image), label});
  }
  if (result.classes.empty()) {
    throw DataError(
        fmt::format("{}: there are no folders in it; each class needs a folder with its images",
                    root.native()));
  }
  require_utf8(root, result.classes);
  if (!empty_classes.empty()) {
    throw DataError(
        fmt::format("{}: no images for the classes {} (files that end in {} count as images)",
                    root.native(), fmt::join(empty_classes, ", "), extensions()));
  }
  return result;
}

LabelledFiles scan_flat_folder(const fs::path& folder) {
  require_folder(folder);
  LabelledFiles result;
  result.root = folder;
  std::map<std::string, std::vector<fs::path>> by_class;  // in byte order
  for (const fs::directory_entry& entry : visible_entries(folder, result.hidden)) {
    if (!has_image_extension(entry.path()) || is_folder(entry)) continue;
    const std::string stem = entry.path().stem().native();
    const std::size_t underscore = stem.rfind('_');
    if (underscore == std::string::npos || underscore == 0) {
      throw DataError(fmt::format("{}: the name does not say the class; CLASS_NUMBER{} is expected",
                                  entry.path().native(), entry.path().extension().native()));
    }
    by_class[stem.substr(0, underscore)].push_back(entry.path());
  }
  if (by_class.empty()) {
    throw DataError(
        fmt::format("{}: there are no images in it (files that end in {} count as images)",
                    folder.native(), extensions()));
  }
  for (auto& [name, images] : by_class) {
    const auto label = static_cast<std::int64_t>(result.classes.size());
    result.classes.push_back(name);
    for (fs::path& image : images) result.files.push_back({std::move(image), label});
  }
  require_utf8(folder, result.classes);
  return result;
}

LabelledFiles with_classes(LabelledFiles files, const std::vector<std::string>& classes) {
  std::vector<std::int64_t> new_label;
  std::vector<std::string> unknown;
  for (const std::string& name : files.classes) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) unknown.push_back(name);
    new_label.push_back(found - classes.begin());
  }
  if (!unknown.empty()) {
    throw DataError(fmt::format("{}: the classes {} are not among the {} known ones ({})",
                                files.root.native(), some_of(unknown), classes.size(),
                                some_of(classes)));
  }
  for (LabelledFiles::File& file : files.files) {
    file.label = new_label[static_cast<std::size_t>(file.label)];
  }
  files.classes = classes;
  return files;
}

std::pair<LabelledFiles, LabelledFiles> split_by_class(const LabelledFiles& files, double share,
                                                       std::uint64_t seed) {
  if (!(share > 0 && share < 1)) {
    throw UsageError(fmt::format("a validation share of {} is not between 0 and 1", share));
  }
  std::vector<std::vector<std::size_t>> of_class(files.classes.size());
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    of_class[static_cast<std::size_t>(files.files[i].label)].push_back(i);
  }
  std::set<std::size_t> taken;
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    const auto count = static_cast<std::int64_t>(of_class[c].size());
    const auto wanted = static_cast<std::int64_t>(static_cast<double>(count) * share + 0.5);
    const std::int64_t take = std::min(std::max<std::int64_t>(wanted, 1), count - 1);
    RandomStream stream({seed, Purpose::shuffle, 0, c + 1});  // sample 0 orders epochs
    const std::vector<std::int64_t> order = permutation(count, stream);
    for (std::int64_t i = 0; i < take; ++i) {
      taken.insert(of_class[c][static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
    }
  }
  std::pair<LabelledFiles, LabelledFiles> result;
  for (LabelledFiles* part : {&result.first, &result.second}) {
    part->root = files.root;
    part->classes = files.classes;
  }
  result.first.hidden = files.hidden;
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    (taken.contains(i) ? result.second : result.first).files.push_back(files.files[i]);
  }
  return result;
}

}  // namespace collar::data
