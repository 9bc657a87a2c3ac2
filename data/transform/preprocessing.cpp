// SPDX-License-Identifier: Apache-2.0
#include "data/transform/preprocessing.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/transform/crop.hpp"
#include "data/transform/flip.hpp"
#include "data/transform/name_table.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

constexpr int kLargestSize = 8192;

constexpr NameTable<TransformPreset, 3> kPresets{"transform", {"article", "timm", "none"}};
constexpr NameTable<ByteScaling, 2> kScalings{"scaling", {"multiply", "divide"}};
constexpr NameTable<PassOrder, 2> kPassOrders{"pass order", {"pillow13", "pillow12"}};

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

std::vector<Pipeline::Step> Preprocessing::geometry(bool training) const {
  const Resampling resampling{interpolation, pass_order};
  switch (transform) {
    case TransformPreset::article:
      break;
    case TransformPreset::timm:
      if (training) return {RandomResizedCrop(size, {}, resampling)};
      return {Resize(static_cast<int>(std::floor(size / crop_pct)), resampling), CenterCrop(size)};
    case TransformPreset::none:
      return {RequireSize(size)};
  }
  return {Resize(size, size, resampling)};
}

Pipeline Preprocessing::pipeline(bool training) const {
  validate();
  std::vector<Pipeline::Step> steps = geometry(training);
  if (training && hflip > 0) steps.emplace_back(RandomHorizontalFlip(hflip));
  steps.emplace_back(ToFloat({scaling, mean, std}));
  return Pipeline(steps);
}

std::string_view name_of(TransformPreset preset) {
  return kPresets.name(preset);
}

TransformPreset transform_preset_from_name(std::string_view name) {
  return kPresets.value(name);
}

nlohmann::json to_json(const Preprocessing& preprocessing) {
  return {{"transform", name_of(preprocessing.transform)},
          {"size", preprocessing.size},
          {"interpolation", name_of(preprocessing.interpolation)},
          {"pass_order", kPassOrders.name(preprocessing.pass_order)},
          {"crop_pct", preprocessing.crop_pct},
          {"hflip", preprocessing.hflip},
          {"scaling", kScalings.name(preprocessing.scaling)},
          {"mean", preprocessing.mean},
          {"std", preprocessing.std}};
}

Preprocessing preprocessing_from_json(const nlohmann::json& json) {
  try {
    Preprocessing result;
    result.transform = transform_preset_from_name(json.at("transform").get<std::string>());
    result.size = json.at("size").get<int>();
    result.interpolation = interpolation_from_name(json.at("interpolation").get<std::string>());
    result.pass_order = kPassOrders.value(json.at("pass_order").get<std::string>());
    result.crop_pct = json.at("crop_pct").get<double>();
    result.hflip = json.at("hflip").get<double>();
    result.scaling = kScalings.value(json.at("scaling").get<std::string>());
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
