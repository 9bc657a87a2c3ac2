// SPDX-License-Identifier: Apache-2.0
#include "data/transform/to_float.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"

namespace collar::data {

ToFloat::ToFloat(const ToFloatOptions& options) {
  std::array<float, 3> mean{}, deviation{};
  for (std::size_t c = 0; c < mean.size(); ++c) {
    mean[c] = static_cast<float>(options.mean[c]);
    deviation[c] = static_cast<float>(options.std[c]);
    if (!std::isfinite(mean[c]) || !std::isfinite(deviation[c]) || !(deviation[c] > 0)) {
      throw UsageError(fmt::format(
          "normalisation: mean {} and standard deviation {} of channel {} cannot be used",
          options.mean[c], options.std[c], c));
    }
  }
  table_ = std::make_shared<kernels::PixelTable>(options.scaling, mean, deviation);
}

void ToFloat::apply(const Image& image, float* chw) const {
  kernels::image_to_planes(image.bytes().data(), image.height(), image.width(), false, *table_,
                           chw);
}

}  // namespace collar::data
