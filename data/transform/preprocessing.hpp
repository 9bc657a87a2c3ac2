// SPDX-License-Identifier: Apache-2.0
// Preprocessing: everything that decides which floats an image becomes, as a plain value. It is
// stored with a model, so that evaluation and prediction treat images as training did.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "data/transform/pipeline.hpp"
#include "data/transform/resize.hpp"

namespace collar::data {

enum class TransformPreset : std::uint8_t {
  article,  ///< Resize((size, size)): the whole image, its aspect ratio changed
  timm,     ///< evaluation: short edge to size / crop_pct, centre crop; training: RandomResizedCrop
  none      ///< images have the right size already
};

struct Preprocessing {
  TransformPreset transform = TransformPreset::article;
  int size = 224;  ///< width and height of what the model sees
  Interpolation interpolation = Interpolation::bilinear;
  PassOrder pass_order = PassOrder::pillow13;
  double crop_pct = 1;  ///< timm only: what the centre crop keeps of the short edge
  double hflip = 0;     ///< probability of a horizontal flip in training
  ByteScaling scaling = ByteScaling::multiply;
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> std{1, 1, 1};

  /// What a preset means where nothing else is said. article: bilinear, no normalisation, no flip.
  /// timm: bicubic, crop_pct 0.875, ImageNet's mean and std, flip 0.5, ToTensor's scale.
  static Preprocessing of(TransformPreset preset, int size = 224);

  /// Throws UsageError that names the field with an impossible value.
  void validate() const;
  /// The transforms of a training set and of an evaluation set. Both validate first.
  Pipeline train() const { return pipeline(true); }
  Pipeline eval() const { return pipeline(false); }

  friend bool operator==(const Preprocessing&, const Preprocessing&) = default;

 private:
  Pipeline pipeline(bool training) const;
  /// What gives an image its size.
  std::vector<Pipeline::Step> geometry(bool training) const;
};

inline constexpr std::array<double, 3> kImageNetMean{0.485, 0.456, 0.406};
inline constexpr std::array<double, 3> kImageNetStd{0.229, 0.224, 0.225};

std::string_view name_of(TransformPreset preset);
/// Throws UsageError that lists the names.
TransformPreset transform_preset_from_name(std::string_view name);

/// An object with a member for each field; enumerations are names.
nlohmann::json to_json(const Preprocessing& preprocessing);
/// The inverse. Throws FileError if a member is missing or impossible.
Preprocessing preprocessing_from_json(const nlohmann::json& json);

}  // namespace collar::data
