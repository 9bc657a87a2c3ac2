// SPDX-License-Identifier: Apache-2.0
// A data set that needs no files: sample i is an image of a formula of i. Some samples can be made
// bad.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/dataset.hpp"
#include "data/transform/crop.hpp"
#include "data/transform/flip.hpp"
#include "data/transform/resize.hpp"
#include "kernels/core/error.hpp"

namespace collar::test {

class NumberedImages final : public data::Dataset {
 public:
  explicit NumberedImages(std::int64_t size,
                          data::Pipeline pipeline = {data::RandomResizedCrop(8),
                                                     data::RandomHorizontalFlip()})
      : size_(size), pipeline_(std::move(pipeline)) {}

  std::int64_t size() const override { return size_; }
  std::int64_t label(std::int64_t index) const override { return index % 5; }
  std::string name(std::int64_t index) const override { return fmt::format("image {}", index); }
  const std::vector<std::string>& classes() const override { return classes_; }
  const data::Pipeline& pipeline() const override { return pipeline_; }

  data::Image load(std::int64_t index) const override {
    ++loads;
    if (bad.contains(index)) throw DataError(name(index) + ": damaged");
    data::Image image({20 + static_cast<int>(index % 7), 16 + static_cast<int>(index % 3)});
    std::int64_t value = index * 31;
    for (std::uint8_t& byte : image.bytes())
      byte = static_cast<std::uint8_t>(value += 7 + index % 11);
    return image;
  }

  std::set<std::int64_t> bad;
  mutable std::atomic<int> loads = 0;

 private:
  std::int64_t size_;
  data::Pipeline pipeline_;
  std::vector<std::string> classes_{"a", "b", "c", "d", "e"};
};

}  // namespace collar::test
