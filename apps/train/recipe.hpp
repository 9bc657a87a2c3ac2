// SPDX-License-Identifier: Apache-2.0
// From options to the objects of a training loop: photos, model, optimizer, schedule. Each function
// reads like the lines a program would have instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/accelerate/accelerator.hpp"
#include "apps/train/options.hpp"
#include "data/data.hpp"
#include "nn/nn.hpp"

namespace collar::apps {

/// The photos of a run and how they are prepared.
struct Photos {
  data::Preprocessing preprocessing;
  data::ImageFiles train;
  data::ImageFiles valid;
  /// The folder had no validation part: a fifth of each class was taken.
  bool valid_was_split = false;
};
data::Preprocessing preprocessing_of(const TrainOptions& options);
/// Puts into the options what the transform says where they say nothing.
void resolve_preprocessing(TrainOptions& options);
/// What is trained on and what is kept for validation in a folder that has no part for it: a fifth
/// of each class.
std::pair<data::LabelledFiles, data::LabelledFiles> split_for_validation(
    const data::LabelledFiles& files, std::uint64_t seed);
Photos open_photos(const TrainOptions& options);

/// The weights to start from, and what to tell about them.
struct StartingPoint {
  std::unique_ptr<nn::ResNet> model;
  std::vector<std::string> notes;
};
/// Throws UsageError, with the way to get them, if pretrained weights are wanted and not in the
/// local cache.
StartingPoint make_model(const TrainOptions& options, std::int64_t classes);

/// The file of a model's published weights in the local Hugging Face cache, if it is there:
/// $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub.
std::optional<std::filesystem::path> cached_weights(const nn::ModelInfo& info);

std::unique_ptr<nn::Optimizer> make_optimizer(const TrainOptions& options, const nn::Module& model);
/// Numbers it keeps for each weight it trains.
int optimizer_states(const TrainOptions& options);

/// Lengths of a run, in optimizer steps and in schedule ticks (one a logical rank and step, as in
/// accelerate).
struct Lengths {
  std::int64_t batches_per_epoch = 0;  ///< of each logical rank
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;     ///< after which the run ends
  std::int64_t schedule_ticks = 0;  ///< for which the schedule is made
};
/// `samples` of the training set.
Lengths lengths_of(const TrainOptions& options, std::int64_t samples);

/// Throws UsageError if some batch of an epoch leaves batch normalisation a single value a channel.
void require_values_to_normalise(const TrainOptions& options, std::int64_t samples);
/// The same for a batch of so many photos, which `name` names: a single one of them, so small that
/// the last layers see one pixel of it.
void require_values_to_normalise(const std::string& name, std::int64_t photos, int img_size);

std::unique_ptr<nn::Schedule> make_schedule(const TrainOptions& options, nn::Optimizer& optimizer,
                                            const Lengths& lengths);

AcceleratorOptions accelerator_options(const TrainOptions& options);

/// What is stored with a trained model.
nn::ModelConfig model_config(const TrainOptions& options, const nn::ResNet& model,
                             const std::vector<std::string>& classes,
                             const data::Preprocessing& preprocessing);

}  // namespace collar::apps
