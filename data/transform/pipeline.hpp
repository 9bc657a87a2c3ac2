// SPDX-License-Identifier: Apache-2.0
// Pipeline: the transforms of a data set in order, from a decoded image to planar floats. Written
// as in torchvision: {Resize(224, 224), RandomHorizontalFlip(), ToFloat()}.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "data/transform/to_float.hpp"
#include "data/transform/transform.hpp"

namespace collar::data {

class Pipeline {
 public:
  /// An image transform, or the conversion that ends the pipeline.
  class Step {
   public:
    template <std::derived_from<ImageTransform> T>
    Step(T transform)  // NOLINT: meant to be implicit
        : step_(std::make_shared<const T>(std::move(transform))) {}
    Step(ToFloat conversion) : step_(std::move(conversion)) {}  // NOLINT: meant to be implicit

   private:
    friend class Pipeline;
    std::variant<std::shared_ptr<const ImageTransform>, ToFloat> step_;
  };

  /// No transforms; bytes become floats by ToFloat().
  Pipeline() = default;
  /// ToFloat, if it is there, is the last step. Throws UsageError otherwise.
  Pipeline(std::initializer_list<Step> steps) : Pipeline(std::vector<Step>(steps)) {}
  explicit Pipeline(const std::vector<Step>& steps);

  /// The size of every image that leaves the pipeline; nothing if it depends on the input.
  std::optional<ImageSize> output_size() const;
  /// The image transforms alone.
  Image transform(Image image, RandomSource& random) const;
  /// The whole way. `chw` takes 3 x height x width floats, planes of red, green, blue.
  void run(Image image, RandomSource& random, float* chw) const;

 private:
  std::vector<std::shared_ptr<const ImageTransform>> transforms_;
  ToFloat to_float_;
};

}  // namespace collar::data
