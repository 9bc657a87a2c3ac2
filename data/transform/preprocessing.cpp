// SPDX-License-Identifier: Apache-2.0
#include "data/transform/preprocessing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "data/transform/crop.hpp"
#include "data/transform/flip.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

constexpr int kLargestSize = 8192;

constexpr std::array<std::string_view, 3> kPresets{"article", "timm", "none"};
constexpr std::array<std::string_view, 2> kScalings{"multiply", "divide"};
constexpr std::array<std::string_view, 2> kPassOrders{"pillow13", "pillow12"};

template <typename Enum>
std::string_view name_in(std::span<const std::string_view> names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <typename Enum>
Enum value_in(std::span<const std::string_view> names, std::string_view name,
              std::string_view what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw UsageError(
        fmt::format("{} '{}' is unknown; there are {}", what, name, fmt::join(names, ", ")));
  }
  return static_cast<Enum>(found - names.begin());
}

[[noreturn]] void refuse(std::string_view field, double value, std::string_view expected) {
  throw UsageError(
      fmt::format("preprocessing: {} = {}, but it has to be {}", field, value, expected));
}

}  // namespace

Preprocessing Preprocessing::of(TransformPreset preset, int size) {
  Preprocessing result;
  result.transform = preset;
  result.size = size;
  if (preset == TransformPreset::timm) {
    result.interpolation = Interpolation::bicubic;
    result.crop_pct = 0.875;
    result.hflip = 0.5;
    result.scaling = ByteScaling::divide;
    result.mean = kImageNetMean;
    result.std = kImageNetStd;
  }
  return result;
}

void Preprocessing::validate() const {
  if (size < 1 || size > kLargestSize) {
    refuse("size", size, fmt::format("from 1 to {}", kLargestSize));
  }
  if (!(crop_pct >= 0.01 && crop_pct <= 1)) refuse("crop_pct", crop_pct, "from 0.01 to 1");
  if (crop_pct != 1 && transform != TransformPreset::timm) {
    refuse("crop_pct", crop_pct, "1 where nothing is cropped (only the timm transform crops)");
  }
  if (!(hflip >= 0 && hflip <= 1)) refuse("hflip", hflip, "from 0 to 1");
  for (std::size_t c = 0; c < 3; ++c) {
    if (!std::isfinite(mean[c])) refuse("mean", mean[c], "finite");
    if (!(std::isfinite(std[c]) && std[c] > 0)) refuse("std", std[c], "positive");
  }
}

Pipeline Preprocessing::train() const {
  validate();
  const Resampling resampling{interpolation, pass_order};
  std::vector<Pipeline::Step> steps;
  switch (transform) {
    case TransformPreset::article:
      steps.emplace_back(Resize(size, size, resampling));
      break;
    case TransformPreset::timm:
      steps.emplace_back(RandomResizedCrop(size, {}, resampling));
      break;
    case TransformPreset::none:
      steps.emplace_back(RequireSize(size));
      break;
  }
  if (hflip > 0) steps.emplace_back(RandomHorizontalFlip(hflip));
  steps.emplace_back(ToFloat({scaling, mean, std}));
  return Pipeline(steps);
}

Pipeline Preprocessing::eval() const {
  validate();
  const Resampling resampling{interpolation, pass_order};
  std::vector<Pipeline::Step> steps;
  switch (transform) {
    case TransformPreset::article:
      steps.emplace_back(Resize(size, size, resampling));
      break;
    case TransformPreset::timm:
      steps.emplace_back(Resize(static_cast<int>(std::floor(size / crop_pct)), resampling));
      steps.emplace_back(CenterCrop(size));
      break;
    case TransformPreset::none:
      steps.emplace_back(RequireSize(size));
      break;
  }
  steps.emplace_back(ToFloat({scaling, mean, std}));
  return Pipeline(steps);
}

std::string_view name_of(TransformPreset preset) {
  return name_in(kPresets, preset);
}

TransformPreset transform_preset_from_name(std::string_view name) {
  return value_in<TransformPreset>(kPresets, name, "transform");
}

nlohmann::json to_json(const Preprocessing& preprocessing) {
  return {{"transform", name_of(preprocessing.transform)},
          {"size", preprocessing.size},
          {"interpolation", name_of(preprocessing.interpolation)},
          {"pass_order", name_in(kPassOrders, preprocessing.pass_order)},
          {"crop_pct", preprocessing.crop_pct},
          {"hflip", preprocessing.hflip},
          {"scaling", name_in(kScalings, preprocessing.scaling)},
          {"mean", preprocessing.mean},
          {"std", preprocessing.std}};
}

Preprocessing preprocessing_from_json(const nlohmann::json& json) {
  try {
    Preprocessing result;
    result.transform = transform_preset_from_name(json.at("transform").get<std::string>());
    result.size = json.at("size").get<int>();
    result.interpolation = interpolation_from_name(json.at("interpolation").get<std::string>());
    result.pass_order =
        value_in<PassOrder>(kPassOrders, json.at("pass_order").get<std::string>(), "pass order");
    result.crop_pct = json.at("crop_pct").get<double>();
    result.hflip = json.at("hflip").get<double>();
    result.scaling =
        value_in<ByteScaling>(kScalings, json.at("scaling").get<std::string>(), "scaling");
    result.mean = json.at("mean").get<std::array<double, 3>>();
    result.std = json.at("std").get<std::array<double, 3>>();
    result.validate();
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("preprocessing: {}", error.what()));
  } catch (const UsageError& error) {
    throw FileError(error.what());
  }
}

}  // namespace collar::data
