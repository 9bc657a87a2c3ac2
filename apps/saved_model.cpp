// SPDX-License-Identifier: Apache-2.0
#include "apps/saved_model.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "engine/io/durable_file.hpp"
#include "engine/io/input_file.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

constexpr const char* kPreprocessingFile = "preprocessing.json";
constexpr std::uint64_t kLargestFile = 1 << 20;

// What timm's config.json says about photos: its evaluation transform, or a plain resize of both
// sides.
data::Preprocessing preprocessing_of(const nn::PretrainedConfig& config) {
  const bool squash = config.crop_mode == "squash";
  data::Preprocessing p =
      data::Preprocessing::of(squash ? data::TransformPreset::article : data::TransformPreset::timm,
                              static_cast<int>(config.input_size[1]));
  p.interpolation = data::interpolation_from_name(config.interpolation);
  if (!squash) p.crop_pct = config.crop_pct;
  p.mean = config.mean;
  p.std = config.std;
  p.validate();
  return p;
}

}  // namespace

void save_trained_model(const std::filesystem::path& folder, const nn::ResNet& model,
                        const nn::ModelConfig& config, const data::Preprocessing& preprocessing) {
  const std::string text = data::to_json(preprocessing).dump(2) + "\n";
  write_durably(folder / kPreprocessingFile, std::as_bytes(std::span(text)));
  nn::save_model(folder, model, config);
}

TrainedModel load_trained_model(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw FileError(
        fmt::format("{}: there is no such model: expected a run's folder", path.native()));
  }
  if (path.extension() == ".collar") {
    const std::filesystem::path run = std::filesystem::absolute(path).parent_path().parent_path();
    throw FileError(
        fmt::format("{}: this is a checkpoint, to go on training from (--resume); the model is in "
                    "the run's folder, once it is finished: give that ({})",
                    path.native(), run.native()));
  }
  nn::LoadedModel loaded = nn::load_model(path);
  const std::filesystem::path folder =
      std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
  const std::filesystem::path file = folder / kPreprocessingFile;
  TrainedModel result{std::move(loaded.model), std::move(loaded.config), {}};
  if (!std::filesystem::exists(file, ignored)) {
    try {
      result.preprocessing = preprocessing_of(result.config.pretrained);
    } catch (const UsageError& error) {
      throw FileError(fmt::format("{}: {}", (folder / "config.json").native(), error.what()));
    }
    return result;
  }
  const std::string text = read_text(file, kLargestFile);
  try {
    result.preprocessing = data::preprocessing_from_json(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: not JSON: {}", file.native(), error.what()));
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: {}", file.native(), error.what()));
  }
  return result;
}

std::vector<std::string> class_names(const nn::ModelConfig& config) {
  if (!config.label_names.empty()) return config.label_names;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < config.num_classes; ++i) names.push_back(fmt::format("class {}", i));
  return names;
}

}  // namespace collar::apps
