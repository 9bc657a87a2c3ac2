// SPDX-License-Identifier: Apache-2.0
// A trained model as a folder: config.json and model.safetensors as timm has them, and
// preprocessing.json, which says to the last bit how its photos were prepared.
#pragma once

#include <filesystem>

#include "data/transform/preprocessing.hpp"
#include "nn/model_files.hpp"

namespace collar::apps {

void save_trained_model(const std::filesystem::path& folder, const nn::ResNet& model,
                        const nn::ModelConfig& config, const data::Preprocessing& preprocessing);

struct TrainedModel {
  std::unique_ptr<nn::ResNet> model{};  ///< on the host, in evaluation mode
  nn::ModelConfig config;
  data::Preprocessing preprocessing;
};

/// Reads such a folder, or one that timm has written: then photos are prepared as its config.json
/// says. `path` is the folder or its model.safetensors. Throws FileError.
TrainedModel load_trained_model(const std::filesystem::path& path);

/// The names of the model's classes; "class 0" … where the file does not say.
std::vector<std::string> class_names(const nn::ModelConfig& config);

}  // namespace collar::apps
