// SPDX-License-Identifier: Apache-2.0
#include "nn/model_config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/core/error.hpp"
#include "nn/model_zoo.hpp"

namespace collar::nn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostClasses = 10'000'000;
constexpr std::int64_t kLargestInput = 8192;  // height and width, pixels

/// Overwrites `value` if the object has a member of that name that is not null.
template <typename T>
void read(const Json& object, const char* name, T& value) {
  const auto member = object.find(name);
  if (member != object.end() && !member->is_null()) member->get_to(value);
}

/// A member that is an object, or an empty one.
Json object_in(const Json& json, const char* name) {
  const auto member = json.find(name);
  if (member == json.end() || member->is_null()) return Json::object();
  if (!member->is_object()) throw FileError(fmt::format("config.json: {} is no object", name));
  return *member;
}

void read_pretrained(const Json& json, PretrainedConfig& config) {
  read(json, "tag", config.tag);
  read(json, "custom_load", config.custom_load);
  read(json, "input_size", config.input_size);
  read(json, "test_input_size", config.test_input_size);
  read(json, "fixed_input_size", config.fixed_input_size);
  read(json, "interpolation", config.interpolation);
  read(json, "crop_pct", config.crop_pct);
  read(json, "test_crop_pct", config.test_crop_pct);
  read(json, "crop_mode", config.crop_mode);
  read(json, "mean", config.mean);
  read(json, "std", config.std);
  read(json, "num_classes", config.num_classes);
  read(json, "pool_size", config.pool_size);
  read(json, "first_conv", config.first_conv);
  read(json, "classifier", config.classifier);
  read(json, "license", config.license);
  read(json, "origin_url", config.origin_url);
  read(json, "paper_ids", config.paper_ids);
}

Json pretrained_json(const PretrainedConfig& config) {
  Json json{{"tag", config.tag},
            {"custom_load", config.custom_load},
            {"input_size", config.input_size},
            {"test_input_size", config.test_input_size},
            {"fixed_input_size", config.fixed_input_size},
            {"interpolation", config.interpolation},
            {"crop_pct", config.crop_pct},
            {"test_crop_pct", config.test_crop_pct},
            {"crop_mode", config.crop_mode},
            {"mean", config.mean},
            {"std", config.std},
            {"num_classes", config.num_classes},
            {"pool_size", config.pool_size},
            {"first_conv", config.first_conv},
            {"classifier", config.classifier},
            {"license", config.license},
            {"origin_url", config.origin_url}};
  if (!config.paper_ids.empty()) json["paper_ids"] = config.paper_ids;
  return json;
}

/// Throws FileError naming the member, unless least <= value <= most.
template <typename T>
void require_between(const char* name, T value, T least, T most) {
  if (value >= least && value <= most) return;
  throw FileError(
      fmt::format("config.json: {} is {}, expected {} to {}", name, value, least, most));
}

ModelConfig parsed(const Json& json) {
  ModelConfig config;
  if (!json.is_object() || !json.contains("architecture")) {
    throw FileError("config.json: it names no architecture");
  }
  json.at("architecture").get_to(config.architecture);
  const ModelInfo& info = model_info(config.architecture);
  config.num_features = info.num_features();
  config.pretrained = info.pretrained;

  read_pretrained(object_in(json, "pretrained_cfg"), config.pretrained);
  config.num_classes = config.pretrained.num_classes;
  read(json, "num_classes", config.num_classes);
  read(json, "num_features", config.num_features);
  read(json, "label_names", config.label_names);
  require_between<std::int64_t>("num_classes", config.num_classes, 1, kMostClasses);
  require_between<std::int64_t>("input_size", config.pretrained.input_size[1], 1, kLargestInput);
  require_between("crop_pct", config.pretrained.crop_pct, 0.01, 1.0);
  const auto names = static_cast<std::int64_t>(config.label_names.size());
  if (names != 0 && names != config.num_classes) {
    throw FileError(
        fmt::format("config.json: {} label_names for {} classes", names, config.num_classes));
  }
  return config;
}

}  // namespace

std::string to_json(const ModelConfig& config) {
  Json json{{"architecture", config.architecture},
            {"num_classes", config.num_classes},
            {"num_features", config.num_features},
            {"global_pool", "avg"}};
  if (!config.label_names.empty()) json["label_names"] = config.label_names;
  json["model_args"] = {
      {"num_classes", config.num_classes}, {"in_chans", 3}, {"global_pool", "avg"}};
  json["pretrained_cfg"] = pretrained_json(config.pretrained);
  return json.dump(2, ' ', true);
}

ModelConfig model_config_from_json(std::string_view text) {
  try {
    return parsed(Json::parse(text));
  } catch (const Json::exception& error) {
    throw FileError(fmt::format("config.json: {}", error.what()));
  }
}

}  // namespace collar::nn
