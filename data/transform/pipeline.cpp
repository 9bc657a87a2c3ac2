// SPDX-License-Identifier: Apache-2.0
#include "data/transform/pipeline.hpp"

#include "kernels/core/error.hpp"

namespace collar::data {

Pipeline::Pipeline(const std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (const auto* conversion = std::get_if<ToFloat>(&steps[i].step_)) {
      if (i + 1 != steps.size())
        throw UsageError("ToFloat has to be the last transform of a pipeline");
      to_float_ = *conversion;
    } else {
      transforms_.push_back(std::get<std::shared_ptr<const ImageTransform>>(steps[i].step_));
    }
  }
}

std::optional<ImageSize> Pipeline::output_size() const {
  std::optional<ImageSize> size;
  for (const auto& transform : transforms_) size = transform->output_size(size);
  return size;
}

Image Pipeline::transform(Image image, RandomSource& random) const {
  for (const auto& transform : transforms_) image = transform->apply(std::move(image), random);
  return image;
}

void Pipeline::run(Image image, RandomSource& random, float* chw) const {
  to_float_.apply(transform(std::move(image), random), chw);
}

}  // namespace collar::data
