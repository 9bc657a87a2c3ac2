// SPDX-License-Identifier: Apache-2.0
// LabelledFiles: which image files there are and what is on them, found by walking folders. Nothing
// is opened yet.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collar::data {

struct LabelledFiles {
  struct File {
    std::filesystem::path path;
    std::int64_t label = 0;
  };

  std::filesystem::path root;
  std::vector<std::string> classes;  ///< label -> name
  std::vector<File> files;
  std::int64_t hidden = 0;  ///< files and folders passed over because their names begin with "."
};

/// The file name extensions of images, as in torchvision; upper case counts too.
inline constexpr std::array<std::string_view, 9> kImageExtensions{
    ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
bool has_image_extension(const std::filesystem::path& path);

/// One folder a class, as torchvision's ImageFolder: classes in byte order of their names, files of
/// a class sorted by (folder, name), subfolders included, symbolic links followed (but never in a
/// circle). Unlike there, names that begin with "." do not count. Throws DataError if there is no
/// such folder, no class, a class whose name is not UTF-8 (files may have any name), or a class
/// without images (it lists those and the extensions).
LabelledFiles scan_class_folders(const std::filesystem::path& root);

/// All images in one folder, named CLASS_NUMBER.jpg as in the Oxford-IIIT Pet data set: the class
/// is what stands before the last underscore. Files that are no images are passed over. Throws
/// DataError if there is no such folder, no image, an image without an underscore, or a class whose
/// name is not UTF-8.
LabelledFiles scan_flat_folder(const std::filesystem::path& folder);

/// The same files numbered by somebody else's classes: those of the training set or of a model.
/// Throws DataError that names the classes which are not among them.
LabelledFiles with_classes(LabelledFiles files, const std::vector<std::string>& classes);

/// Takes a share of each class away for validation, chosen at random but always alike for a seed; a
/// class of one file keeps it. Returns {the rest, what was taken}. Throws UsageError unless
/// 0 < share < 1.
std::pair<LabelledFiles, LabelledFiles> split_by_class(const LabelledFiles& files, double share,
                                                       std::uint64_t seed);

}  // namespace collar::data
