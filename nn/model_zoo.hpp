// SPDX-License-Identifier: Apache-2.0
// The models there are, by timm's names, and how to make one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/model_config.hpp"
#include "nn/resnet.hpp"

namespace collar::nn {

struct ModelInfo {
  std::string name;
  ResNetDescription description;
  PretrainedConfig pretrained;  ///< of timm's default weights
  std::string weights_url;      ///< of the original .pth file; empty: nobody has trained this one

  std::int64_t num_features() const;
  /// "timm/resnet50d.ra2_in1k": the repository on the Hugging Face hub whose model.safetensors has
  /// the default weights. Empty if there are none.
  std::string hub_id() const;
};

/// The names, in natural order.
std::vector<std::string> list_models();

/// All about a model. The name may carry the tag of its default weights ("resnet50d.ra2_in1k").
/// Throws UsageError that suggests the nearest name.
const ModelInfo& model_info(std::string_view name);

struct ModelOptions {
  std::size_t num_classes = 1000;
  std::filesystem::path weights{};  ///< a safetensors file with timm's names; empty: fresh values
  std::uint64_t seed = 0;           ///< of the fresh values
};

/// A model on the host, in training mode, all of it trainable. Weights for another number of
/// classes are loaded but for the classifier, which starts afresh (load_weights, called apart,
/// tells). Throws UsageError for an unknown name or no classes, FileError for weights that do not
/// fit.
std::unique_ptr<ResNet> create_model(std::string_view name, const ModelOptions& options = {});

}  // namespace collar::nn
