// SPDX-License-Identifier: Apache-2.0
#include "nn/model_files.hpp"

#include <fmt/format.h>

#include <span>
#include <string>
#include <system_error>

#include "engine/io/durable_file.hpp"
#include "engine/io/input_file.hpp"
#include "kernels/core/error.hpp"
#include "nn/model_zoo.hpp"
#include "nn/weights.hpp"

namespace collar::nn {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr std::uint64_t kLargestConfig = 16 << 20;

std::filesystem::path weights_file(const std::filesystem::path& path) {
  std::error_code unreadable;  // opening the file says why
  return std::filesystem::is_directory(path, unreadable) ? path / kWeights : path;
}

}  // namespace

void save_model(const std::filesystem::path& folder, const ResNet& model,
                const ModelConfig& config) {
  const std::string text = to_json(config);
  write_durably(folder / kConfig, std::as_bytes(std::span(text)));
  save_weights(model, folder / kWeights);
}

ModelConfig read_model_config(const std::filesystem::path& path) {
  const std::filesystem::path file = weights_file(path).parent_path() / kConfig;
  const std::string text = read_text(file, kLargestConfig);
  try {
    return model_config_from_json(text);
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

LoadedModel load_model(const std::filesystem::path& path) {
  LoadedModel loaded{.config = read_model_config(path)};
  const ModelInfo& info = model_info(loaded.config.architecture);
  loaded.model = std::make_unique<ResNet>(info.description, loaded.config.num_classes);
  const LoadReport report = load_weights(*loaded.model, weights_file(path));
  if (!report.dropped.empty()) {
    throw FileError(fmt::format("{}: its weights are for {} classes, its config.json for {}",
                                path.string(), report.classes_in_file, loaded.config.num_classes));
  }
  loaded.model->eval();
  return loaded;
}

}  // namespace collar::nn
