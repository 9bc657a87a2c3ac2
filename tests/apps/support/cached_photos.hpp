// SPDX-License-Identifier: Apache-2.0
// Photos that are decoded and resized once and kept in memory, for tests that go over them many
// times.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset/image_files.hpp"
#include "data/transform/resize.hpp"

namespace collar::test {

class CachedPhotos final : public data::Dataset {
 public:
  /// A folder of classes, every photo made size x size pixels.
  CachedPhotos(const std::filesystem::path& folder, int size)
      : files_(folder, {data::Resize(size, size), data::ToFloat()}) {
    data::SampleRandom unused(0, 0, 0);
    for (std::int64_t i = 0; i < files_.size(); ++i)
      images_.push_back(files_.pipeline().transform(files_.load(i), unused));
  }

  std::int64_t size() const override { return files_.size(); }
  data::Image load(std::int64_t index) const override { return copy_of(image(index)); }
  std::int64_t label(std::int64_t index) const override { return files_.label(index); }
  std::string name(std::int64_t index) const override { return files_.name(index); }
  const std::vector<std::string>& classes() const override { return files_.classes(); }
  const data::Pipeline& pipeline() const override { return files_.pipeline(); }

  const std::filesystem::path& path(std::int64_t index) const { return files_.path(index); }
  const data::Image& image(std::int64_t index) const {
    return images_.at(static_cast<std::size_t>(index));
  }

 private:
  static data::Image copy_of(const data::Image& image) {
    data::Image copy(image.size());
    std::ranges::copy(image.bytes(), copy.bytes().begin());
    return copy;
  }

  data::ImageFolder files_;
  std::vector<data::Image> images_;
};

}  // namespace collar::test
