// SPDX-License-Identifier: Apache-2.0
// Dataset: images with labels, numbered from 0. What a DataLoader reads from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/decode/image.hpp"
#include "data/transform/pipeline.hpp"

namespace collar::data {

/// Immutable, callable from any thread. The number of a sample is part of what its random
/// transforms depend on, so it must not change from run to run.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  /// The image as it is stored. Throws DataError that names it.
  virtual Image load(std::int64_t index) const = 0;
  /// In [0, classes().size()).
  virtual std::int64_t label(std::int64_t index) const = 0;
  /// How messages call a sample: a path, as a rule.
  virtual std::string name(std::int64_t index) const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  /// What becomes of each image before it enters a batch.
  virtual const Pipeline& pipeline() const = 0;
};

}  // namespace collar::data
