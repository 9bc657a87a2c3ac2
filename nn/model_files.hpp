// SPDX-License-Identifier: Apache-2.0
// A model as a folder: config.json and model.safetensors, which timm reads and writes too.
#pragma once

#include <filesystem>
#include <memory>

#include "nn/model_config.hpp"
#include "nn/resnet.hpp"

namespace collar::nn {

/// Writes both files into a folder that exists, the weights last. Each is replaced whole or not at
/// all.
void save_model(const std::filesystem::path& folder, const ResNet& model,
                const ModelConfig& config);

struct LoadedModel {
  std::unique_ptr<ResNet> model{};  ///< on the host, in evaluation mode
  ModelConfig config;
};

/// Reads both. `path` is the folder, or the weights' file beside a config.json. Throws FileError
/// for files that are missing or do not fit each other.
LoadedModel load_model(const std::filesystem::path& path);

/// Only the config.json of such a folder or file.
ModelConfig read_model_config(const std::filesystem::path& path);

}  // namespace collar::nn
