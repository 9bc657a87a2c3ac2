// SPDX-License-Identifier: Apache-2.0
// What is to be known about a model besides its weights: its architecture, its classes, and how its
// images are prepared. Kept as timm's config.json, so that timm loads what we save and we read
// what it saved.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace collar::nn {

/// timm's pretrained_cfg: where weights came from, and what their images looked like.
struct PretrainedConfig {
  std::string tag{};  ///< of the weights on the hub: "ra2_in1k"
  bool custom_load = false;
  std::array<std::int64_t, 3> input_size{3, 224, 224};
  std::array<std::int64_t, 3> test_input_size{3, 288, 288};
  bool fixed_input_size = false;
  std::string interpolation = "bicubic";
  double crop_pct = 0.875;  ///< part of the resized image's side that the crop keeps
  double test_crop_pct = 0.95;
  std::string crop_mode = "center";  ///< or "squash": both sides are resized, nothing is cropped
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> std{0.229, 0.224, 0.225};
  std::int64_t num_classes = 1000;
  std::array<std::int64_t, 2> pool_size{7, 7};
  std::string first_conv = "conv1";
  std::string classifier = "fc";
  std::string license = "apache-2.0";
  std::string origin_url = "https://github.com/huggingface/pytorch-image-models";
  std::string paper_ids{};  ///< left out of the file when empty

  friend bool operator==(const PretrainedConfig&, const PretrainedConfig&) = default;
};

struct ModelConfig {
  std::string architecture{};
  std::int64_t num_classes = 1000;
  std::int64_t num_features = 0;
  std::vector<std::string> label_names{};  ///< empty: not known
  PretrainedConfig pretrained{};

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// The text of config.json, byte for byte as timm writes it.
std::string to_json(const ModelConfig& config);

/// Reads such a text. Only the architecture is required: what is missing is taken from the model
/// zoo's defaults, what is unknown is passed over. Throws FileError for text that is no JSON, a
/// member of a wrong type or out of its range (1 … 1,000,000 classes, sides of 1 … 8192 pixels),
/// and as many names as are not classes; UsageError for an unknown architecture.
ModelConfig model_config_from_json(std::string_view text);

}  // namespace collar::nn
