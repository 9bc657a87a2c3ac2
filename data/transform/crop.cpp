// SPDX-License-Identifier: Apache-2.0
#include "data/transform/crop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

void check_size(const char* what, ImageSize size) {
  if (size.width <= 0 || size.height <= 0) {
    throw UsageError(
        fmt::format("{}: a size of {} x {} pixels is impossible", what, size.width, size.height));
  }
}

/// Python's round(): halves go to the even neighbour.
int round_half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

/// Where a centred crop begins along one axis; negative if the image is too small.
int centre_offset(int image, int crop) {
  return crop > image ? -((crop - image) / 2) : round_half_even((image - crop) / 2.0);
}

CropBox central_box(ImageSize image, const CropRange& range) {
  const double ratio = static_cast<double>(image.width) / image.height;
  ImageSize size = image;
  if (ratio < range.ratio_min) size.height = round_half_even(image.width / range.ratio_min);
  if (ratio > range.ratio_max) size.width = round_half_even(image.height * range.ratio_max);
  size = {std::clamp(size.width, 1, image.width), std::clamp(size.height, 1, image.height)};
  return {(image.height - size.height) / 2, (image.width - size.width) / 2, size};
}

}  // namespace

Image crop(const ImageView& source, int left, int top, ImageSize size) {
  Image result(size);
  const int begin = std::clamp(-left, 0, size.width);
  const int end = std::clamp(source.size.width - left, begin, size.width);
  for (int y = 0; y < size.height; ++y) {
    const bool inside = top + y >= 0 && top + y < source.size.height;
    const std::ptrdiff_t first = std::ptrdiff_t{inside ? begin : size.width} * Image::kChannels;
    const std::ptrdiff_t last = std::ptrdiff_t{inside ? end : size.width} * Image::kChannels;
    std::uint8_t* row = result.row(y);
    std::fill(row, row + first, std::uint8_t{0});
    if (last > first) {
      const std::uint8_t* from =
          source.row(top + y) + std::ptrdiff_t{left + begin} * Image::kChannels;
      std::memcpy(row + first, from, static_cast<std::size_t>(last - first));
    }
    std::fill(row + last, row + result.stride(), std::uint8_t{0});
  }
  return result;
}

CenterCrop::CenterCrop(int height, int width) : size_{width, height} {
  check_size("CenterCrop", size_);
}

Image CenterCrop::apply(Image image, RandomSource&) const {
  if (image.size() == size_) return image;
  return crop(image.view(), centre_offset(image.width(), size_.width),
              centre_offset(image.height(), size_.height), size_);
}

CropBox draw_crop(ImageSize image, const CropRange& range, RandomSource& random) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(image.pixels());
  const float log_min = std::log(static_cast<float>(range.ratio_min));
  const float log_max = std::log(static_cast<float>(range.ratio_max));
  const auto scale_min = static_cast<float>(range.scale_min);
  const auto scale_max = static_cast<float>(range.scale_max);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * static_cast<double>(random.uniform(scale_min, scale_max));
    const double ratio = static_cast<double>(std::exp(random.uniform(log_min, log_max)));
    const ImageSize size{round_half_even(std::sqrt(target * ratio)),
                         round_half_even(std::sqrt(target / ratio))};
    if (size.width > 0 && size.width <= image.width && size.height > 0 &&
        size.height <= image.height) {
      const int top = random.below(image.height - size.height + 1);
      const int left = random.below(image.width - size.width + 1);
      return {top, left, size};
    }
  }
  return central_box(image, range);
}

RandomResizedCrop::RandomResizedCrop(int height, int width, const CropRange& range,
                                     const Resampling& resampling)
    : size_{width, height}, range_(range), resampling_(resampling) {
  check_size("RandomResizedCrop", size_);
  if (!(range.scale_min > 0 && range.scale_min < range.scale_max && range.ratio_min > 0 &&
        range.ratio_min < range.ratio_max)) {
    throw UsageError(fmt::format(
        "RandomResizedCrop: scale {} to {} and ratio {} to {} are no ranges of positive numbers",
        range.scale_min, range.scale_max, range.ratio_min, range.ratio_max));
  }
}

Image RandomResizedCrop::apply(Image image, RandomSource& random) const {
  const CropBox box = draw_crop(image.size(), range_, random);
  return resize(image.view(box.left, box.top, box.size), size_, resampling_);
}

Image RequireSize::apply(Image image, RandomSource&) const {
  if (image.size() != size_) {
    throw DataError(fmt::format(
        "the image has {} x {} pixels and is to be taken as it is, but {} x {} are wanted",
        image.width(), image.height(), size_.width, size_.height));
  }
  return image;
}

}  // namespace collar::data
