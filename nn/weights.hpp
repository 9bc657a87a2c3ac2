// SPDX-License-Identifier: Apache-2.0
// Weights that come and go as files of named tensors, under timm's and torchvision's names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nn/module.hpp"

namespace collar::nn {

struct LoadReport {
  /// Tensors of the classifier that were left out because they are for another number of classes:
  /// the model keeps the values it had.
  std::vector<std::string> dropped;
  std::int64_t classes_in_file = 0;  ///< 0 if there is no classifier of that name in the file
};

/// Copies named values into a model's parameters and buffers. f16, bf16 and f64 values become f32;
/// names may carry the prefix "module." of a DistributedDataParallel model; `classifier` names the
/// layer (weight [classes, features]) that is left out when its classes differ. Throws FileError
/// that lists everything missing, unexpected or of another shape; then nothing has changed.
LoadReport load_state(Module& model, const Parameters& state, const std::string& classifier = "fc");

/// load_state from a safetensors file. Throws FileError that says how to make one of PyTorch's.
LoadReport load_weights(Module& model, const std::filesystem::path& file,
                        const std::string& classifier = "fc");

/// Writes a model's state_dict() as a safetensors file, whole or not at all.
void save_weights(const Module& model, const std::filesystem::path& file);

}  // namespace collar::nn
