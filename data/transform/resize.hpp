// SPDX-License-Identifier: Apache-2.0
// Resizing to the bytes of Pillow's Image.resize, and torchvision's Resize on top of it.
#pragma once

#include <optional>

#include "data/transform/resample.hpp"
#include "data/transform/transform.hpp"

namespace collar::data {

/// Which axis comes first decides about single bits, since the pass between is rounded to bytes.
enum class PassOrder : std::uint8_t {
  pillow13,  ///< the vertical pass first if it removes more than twice as many pixels as the other
  pillow12   ///< Pillow up to 12: always the horizontal pass first
};

struct Resampling {
  Interpolation interpolation = Interpolation::bilinear;
  PassOrder order = PassOrder::pillow13;
};

/// The view, made larger or smaller; pixels outside of the view do not count. An axis whose size
/// stays is left as it is. Throws DataError for a result of more pixels than DecodeLimits allow.
Image resize(const ImageView& source, ImageSize size, const Resampling& resampling = {});

/// torchvision's Resize. Sizes are positive (UsageError otherwise).
class Resize final : public ImageTransform {
 public:
  /// The shorter edge gets this length, the longer one is scaled along, rounded down.
  explicit Resize(int short_edge, const Resampling& resampling = {});
  /// Exactly this size; the aspect ratio changes.
  Resize(int height, int width, const Resampling& resampling = {});

  Image apply(Image image, RandomSource& random) const override;
  std::optional<ImageSize> output_size(std::optional<ImageSize> input) const override;

 private:
  ImageSize target(ImageSize input) const;

  int short_edge_ = 0;  ///< if size_ is not given
  std::optional<ImageSize> size_;
  Resampling resampling_;
};

}  // namespace collar::data
