// SPDX-License-Identifier: Apache-2.0
#include "data/transform/flip.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/core/error.hpp"

namespace collar::data {

void flip_horizontally(Image& image) {
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* left = image.row(y);
    std::uint8_t* right = left + image.stride() - Image::kChannels;
    for (; left < right; left += Image::kChannels, right -= Image::kChannels) {
      std::swap_ranges(left, left + Image::kChannels, right);
    }
  }
}

RandomHorizontalFlip::RandomHorizontalFlip(double probability) : probability_(probability) {
  if (!(probability >= 0 && probability <= 1)) {
    throw UsageError(fmt::format("RandomHorizontalFlip: {} is not a probability", probability));
  }
}

Image RandomHorizontalFlip::apply(Image image, RandomSource& random) const {
  if (random.chance(probability_)) flip_horizontally(image);
  return image;
}

}  // namespace collar::data
