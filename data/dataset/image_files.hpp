// SPDX-License-Identifier: Apache-2.0
// The data sets made of image files: ImageFolder (one folder a class) and OxfordPets (one flat
// folder).
#pragma once

#include <utility>

#include "data/dataset/dataset.hpp"
#include "data/dataset/labelled_files.hpp"
#include "data/decode/decode.hpp"

namespace collar::data {

class ImageFiles : public Dataset {
 public:
  explicit ImageFiles(LabelledFiles files, Pipeline pipeline = {}, DecodeLimits limits = {})
      : files_(std::move(files)), pipeline_(std::move(pipeline)), limits_(limits) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.files.size()); }
  Image load(std::int64_t index) const override { return load_image(path(index), limits_); }
  std::int64_t label(std::int64_t index) const override { return at(index).label; }
  std::string name(std::int64_t index) const override { return path(index).native(); }
  const std::vector<std::string>& classes() const override { return files_.classes; }
  const Pipeline& pipeline() const override { return pipeline_; }

  const std::filesystem::path& path(std::int64_t index) const { return at(index).path; }
  const LabelledFiles& files() const { return files_; }

 private:
  const LabelledFiles::File& at(std::int64_t index) const {
    return files_.files.at(static_cast<std::size_t>(index));
  }

  LabelledFiles files_;
  Pipeline pipeline_;
  DecodeLimits limits_;
};

/// scan_class_folders() as a data set.
class ImageFolder final : public ImageFiles {
 public:
  explicit ImageFolder(const std::filesystem::path& root, Pipeline pipeline = {})
      : ImageFiles(scan_class_folders(root), std::move(pipeline)) {}
};

/// scan_flat_folder() as a data set.
class OxfordPets final : public ImageFiles {
 public:
  explicit OxfordPets(const std::filesystem::path& images, Pipeline pipeline = {})
      : ImageFiles(scan_flat_folder(images), std::move(pipeline)) {}
};

}  // namespace collar::data
