// SPDX-License-Identifier: Apache-2.0
#include "data/transform/to_float.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"

namespace collar::data {

ToFloat::ToFloat(const ToFloatOptions& options) {
  auto table = std::make_shared<Table>();
  for (std::size_t c = 0; c < table->size(); ++c) {
    const auto mean = static_cast<float>(options.mean[c]);
    const auto deviation = static_cast<float>(options.std[c]);
    if (!std::isfinite(mean) || !std::isfinite(deviation) || !(deviation > 0)) {
      throw UsageError(fmt::format(
          "normalisation: mean {} and standard deviation {} of channel {} cannot be used",
          options.mean[c], options.std[c], c));
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto x = static_cast<float>(byte);
      const float scaled = options.scale == ByteScale::to_dtype ? x * (1.0f / 255.0f) : x / 255.0f;
      (*table)[c][byte] = (scaled - mean) / deviation;
    }
  }
  table_ = std::move(table);
}

void ToFloat::apply(const ImageView& image, float* chw) const {
  const auto& [red, green, blue] = *table_;
  const std::int64_t plane = image.size.pixels();
  for (int y = 0; y < image.size.height; ++y) {
    const std::uint8_t* row = image.row(y);
    float* out = chw + std::int64_t{y} * image.size.width;
    for (int x = 0; x < image.size.width; ++x, row += Image::kChannels, ++out) {
      out[0] = red[row[0]];
      out[plane] = green[row[1]];
      out[2 * plane] = blue[row[2]];
    }
  }
}

}  // namespace collar::data
