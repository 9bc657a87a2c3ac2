// SPDX-License-Identifier: Apache-2.0
// Left becomes right.
#pragma once

#include "data/transform/transform.hpp"

namespace collar::data {

/// In place.
void flip_horizontally(Image& image);

/// torchvision's RandomHorizontalFlip.
class RandomHorizontalFlip final : public ImageTransform {
 public:
  /// Throws UsageError unless 0 <= probability <= 1.
  explicit RandomHorizontalFlip(double probability = 0.5);

  Image apply(Image image, RandomSource& random) const override;

 private:
  double probability_;
};

}  // namespace collar::data
