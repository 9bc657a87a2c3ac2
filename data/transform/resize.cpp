// SPDX-License-Identifier: Apache-2.0
#include "data/transform/resize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/decode/decode.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

Image copy(const ImageView& source) {
  Image result(source.size);
  for (int y = 0; y < result.height(); ++y) {
    std::memcpy(result.row(y), source.row(y), static_cast<std::size_t>(result.stride()));
  }
  return result;
}

/// Positions advance by adding, as in Pillow's ImagingScaleAffine.
std::vector<int> nearest_positions(int input, int output) {
  const double step = static_cast<double>(input) / output;
  std::vector<int> positions(static_cast<std::size_t>(output));
  double position = step * 0.5;
  for (int& result : positions) {
    result = std::min(static_cast<int>(position), input - 1);
    position += step;
  }
  return positions;
}

Image resize_nearest(const ImageView& source, ImageSize size) {
  const std::vector<int> columns = nearest_positions(source.size.width, size.width);
  const std::vector<int> rows = nearest_positions(source.size.height, size.height);
  Image result(size);
  for (int y = 0; y < size.height; ++y) {
    const std::uint8_t* from = source.row(rows[static_cast<std::size_t>(y)]);
    std::uint8_t* to = result.row(y);
    for (const int x : columns) {
      std::memcpy(to, from + std::ptrdiff_t{x} * Image::kChannels, Image::kChannels);
      to += Image::kChannels;
    }
  }
  return result;
}

bool vertical_first(ImageSize from, ImageSize to, PassOrder order) {
  return order == PassOrder::pillow13 && from.height > to.height &&
         std::int64_t{from.height} - to.height > 2 * (std::int64_t{from.width} - to.width);
}

}  // namespace

Image resize(const ImageView& source, ImageSize size, const Resampling& resampling) {
  if (size.width <= 0 || size.height <= 0 || size.pixels() > DecodeLimits{}.pixels) {
    throw DataError(fmt::format(
        "cannot resize {} x {} pixels to {} x {}: the result may have 1 to {} pixels",
        source.size.width, source.size.height, size.width, size.height, DecodeLimits{}.pixels));
  }
  if (source.size == size) return copy(source);
  if (resampling.interpolation == Interpolation::nearest) return resize_nearest(source, size);

  const auto rows = [&](const ImageView& image) {
    return resample_rows(image,
                         make_weights(image.size.height, size.height, resampling.interpolation));
  };
  const auto columns = [&](const ImageView& image) {
    return resample_columns(image,
                            make_weights(image.size.width, size.width, resampling.interpolation));
  };
  if (source.size.width == size.width) return rows(source);
  if (source.size.height == size.height) return columns(source);
  if (vertical_first(source.size, size, resampling.order)) return columns(rows(source).view());
  return rows(columns(source).view());
}

Resize::Resize(int short_edge, const Resampling& resampling)
    : short_edge_(short_edge), resampling_(resampling) {
  if (short_edge <= 0)
    throw UsageError(fmt::format("Resize: an edge of {} pixels is impossible", short_edge));
}

Resize::Resize(int height, int width, const Resampling& resampling)
    : size_(ImageSize{width, height}), resampling_(resampling) {
  if (height <= 0 || width <= 0) {
    throw UsageError(fmt::format("Resize: a size of {} x {} pixels is impossible", width, height));
  }
}

ImageSize Resize::target(ImageSize input) const {
  if (size_) return *size_;
  const int shorter = std::min(input.width, input.height);
  const int longer = std::max(input.width, input.height);
  const double scaled = static_cast<double>(std::int64_t{short_edge_} * longer) / shorter;
  const int new_longer = static_cast<int>(std::min(scaled, 2147483647.0));
  return input.width <= input.height ? ImageSize{short_edge_, new_longer}
                                     : ImageSize{new_longer, short_edge_};
}

Image Resize::apply(Image image, RandomSource&) const {
  const ImageSize size = target(image.size());
  if (image.size() == size) return image;
  return resize(image.view(), size, resampling_);
}

std::optional<ImageSize> Resize::output_size(std::optional<ImageSize> input) const {
  if (size_) return size_;
  return input ? std::optional(target(*input)) : std::nullopt;
}

}  // namespace collar::data
