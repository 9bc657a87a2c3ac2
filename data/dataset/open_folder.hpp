// SPDX-License-Identifier: Apache-2.0
// What somebody means by `collar train DIR`: finds out how the images in a folder are arranged.
#pragma once

#include <filesystem>
#include <optional>

#include "data/dataset/labelled_files.hpp"

namespace collar::data {

struct OpenedFolder {
  LabelledFiles train;
  /// With the classes of `train`. Nothing if the folder has no validation part: see
  /// split_by_class().
  std::optional<LabelledFiles> valid;
};

/// The images of one part: class folders, or a flat folder of CLASS_NUMBER.jpg files, either in
/// `folder` itself or in `folder`/images. Throws DataError as the scan functions do.
LabelledFiles scan_folder(const std::filesystem::path& folder);

/// Beside DIR/train: DIR/valid, DIR/val, DIR/validation or DIR/test, the first that exists.
std::optional<std::filesystem::path> validation_folder(const std::filesystem::path& folder);

/// DIR/train with its validation_folder(); without DIR/train, everything in DIR is the training
/// part. Throws DataError as the scan functions do,
/// and if the validation part has classes that the training part lacks.
OpenedFolder open_folder(const std::filesystem::path& folder);

}  // namespace collar::data
