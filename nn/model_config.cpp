// SPDX-License-Identifier: Apache-2.0
#include "nn/model_config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "kernels/core/error.hpp"
#include "nn/model_zoo.hpp"

namespace collar::nn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostClasses = 1'000'000;
constexpr std::int64_t kLargestSide = 8192;  ///< pixels

/// The member of that name, unless it is missing or null.
const Json* find(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

/// Overwrites `value` if the object has such a member.
template <typename T>
void read(const Json& object, const char* name, T& value) {
  const Json* member = find(object, name);
  if (member == nullptr) return;
  try {
    member->get_to(value);
  } catch (const Json::exception& error) {
    throw FileError(fmt::format("config.json: {}: {}", name, error.what()));
  }
}

/// A number from `least` to `most`, a whole one for an integral T.
template <typename T>
void take_number(const Json& json, const std::string& name, T least, T most, T& value) {
  const bool fits = std::is_integral_v<T> ? json.is_number_integer() : json.is_number();
  if (!fits || !(json.get<double>() >= static_cast<double>(least) &&
                 json.get<double>() <= static_cast<double>(most))) {
    throw FileError(fmt::format("config.json: {} is {}, expected a {} from {} to {}", name,
                                json.dump(-1, ' ', true).substr(0, 80),
                                std::is_integral_v<T> ? "whole number" : "number", least, most));
  }
  json.get_to(value);
}

template <typename T>
void read_number(const Json& object, const char* name, T least, T most, T& value) {
  if (const Json* member = find(object, name)) take_number(*member, name, least, most, value);
}

/// As many numbers as the array has room for.
template <typename T, std::size_t kSize>
void read_numbers(const Json& object, const char* name, T least, T most,
                  std::array<T, kSize>& values) {
  const Json* member = find(object, name);
  if (member == nullptr) return;
  if (!member->is_array() || member->size() != kSize) {
    throw FileError(fmt::format("config.json: {} is not a list of {} numbers", name, kSize));
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    take_number((*member)[i], fmt::format("{}[{}]", name, i), least, most, values[i]);
  }
}

/// A member that is an object, or an empty one.
Json object_in(const Json& json, const char* name) {
  const Json* member = find(json, name);
  if (member == nullptr) return Json::object();
  if (!member->is_object()) throw FileError(fmt::format("config.json: {} is no object", name));
  return *member;
}

void read_pretrained(const Json& json, PretrainedConfig& config) {
  read(json, "tag", config.tag);
  read(json, "custom_load", config.custom_load);
  read_numbers(json, "input_size", std::int64_t{1}, kLargestSide, config.input_size);
  read_numbers(json, "test_input_size", std::int64_t{1}, kLargestSide, config.test_input_size);
  read(json, "fixed_input_size", config.fixed_input_size);
  read(json, "interpolation", config.interpolation);
  read_number(json, "crop_pct", 0.01, 1.0, config.crop_pct);
  read_number(json, "test_crop_pct", 0.01, 1.0, config.test_crop_pct);
  read(json, "crop_mode", config.crop_mode);
  read_numbers(json, "mean", -1e6, 1e6, config.mean);
  read_numbers(json, "std", 1e-6, 1e6, config.std);
  read_number(json, "num_classes", std::int64_t{1}, kMostClasses, config.num_classes);
  read_numbers(json, "pool_size", std::int64_t{1}, kLargestSide, config.pool_size);
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

ModelConfig parsed(const Json& json) {
  ModelConfig config;
  if (!json.is_object() || find(json, "architecture") == nullptr) {
    throw FileError("config.json: it names no architecture");
  }
  read(json, "architecture", config.architecture);
  const ModelInfo& info = model_info(config.architecture);
  config.num_features = info.num_features();
  config.pretrained = info.pretrained;

  read_pretrained(object_in(json, "pretrained_cfg"), config.pretrained);
  config.num_classes = config.pretrained.num_classes;
  read_number(json, "num_classes", std::int64_t{1}, kMostClasses, config.num_classes);
  read_number(json, "num_features", std::int64_t{1}, kMostClasses, config.num_features);
  read(json, "label_names", config.label_names);
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
