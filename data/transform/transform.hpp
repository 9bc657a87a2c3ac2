// SPDX-License-Identifier: Apache-2.0
// What one transform is. To add one, derive from ImageTransform; nothing else needs to know of it.
#pragma once

#include <optional>

#include "data/decode/image.hpp"
#include "data/transform/random_source.hpp"

namespace collar::data {

/// A step from image to image: immutable, callable from any thread.
class ImageTransform {
 public:
  virtual ~ImageTransform() = default;
  /// Random transforms draw from `random`, always the same number of words or as many as their
  /// result needs; the others leave it alone. Throws DataError if the image does not suit.
  virtual Image apply(Image image, RandomSource& random) const = 0;
  /// The size of what apply() returns, if it is the same for all images of the size `input`
  /// (nothing: of any size).
  virtual std::optional<ImageSize> output_size(std::optional<ImageSize> input) const {
    return input;
  }
};

}  // namespace collar::data
