// SPDX-License-Identifier: Apache-2.0
// Cutting rectangles out of images: a fixed one in the middle, or one drawn at random and resized.
#pragma once

#include <optional>

#include "data/transform/resize.hpp"
#include "data/transform/transform.hpp"

namespace collar::data {

/// The rectangle whose top left corner is at (left, top) of the image; what lies outside is black.
Image crop(const ImageView& source, int left, int top, ImageSize size);

/// torchvision's CenterCrop. An image that is too small gets black borders.
class CenterCrop final : public ImageTransform {
 public:
  /// Throws UsageError unless both are positive.
  CenterCrop(int height, int width);
  explicit CenterCrop(int size) : CenterCrop(size, size) {}

  Image apply(Image image, RandomSource& random) const override;
  std::optional<ImageSize> output_size(std::optional<ImageSize>) const override { return size_; }

 private:
  ImageSize size_;
};

/// Where RandomResizedCrop cuts.
struct CropBox {
  int top = 0;
  int left = 0;
  ImageSize size;
};

struct CropRange {
  double scale_min = 0.08;  ///< share of the image's area
  double scale_max = 1.0;
  double ratio_min = 3.0 / 4.0;  ///< width / height
  double ratio_max = 4.0 / 3.0;
};

/// torchvision's RandomResizedCrop.get_params: up to ten tries of an area and an aspect ratio (its
/// logarithm uniform), then a place for the first that fits; if none does, the largest central
/// rectangle whose ratio is in range.
CropBox draw_crop(ImageSize image, const CropRange& range, RandomSource& random);

/// Cuts at random, then resizes to a fixed size.
class RandomResizedCrop final : public ImageTransform {
 public:
  /// Throws UsageError for sizes that are not positive and ranges that are empty.
  RandomResizedCrop(int height, int width, const CropRange& range = {},
                    const Resampling& resampling = {});
  explicit RandomResizedCrop(int size, const CropRange& range = {},
                             const Resampling& resampling = {})
      : RandomResizedCrop(size, size, range, resampling) {}

  Image apply(Image image, RandomSource& random) const override;
  std::optional<ImageSize> output_size(std::optional<ImageSize>) const override { return size_; }

 private:
  ImageSize size_;
  CropRange range_;
  Resampling resampling_;
};

/// Lets images of one size pass and refuses all others: for data that is already as it has to be.
class RequireSize final : public ImageTransform {
 public:
  RequireSize(int height, int width) : size_{width, height} {}
  explicit RequireSize(int size) : RequireSize(size, size) {}

  Image apply(Image image, RandomSource& random) const override;
  std::optional<ImageSize> output_size(std::optional<ImageSize>) const override { return size_; }

 private:
  ImageSize size_;
};

}  // namespace collar::data
