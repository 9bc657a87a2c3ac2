// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: what is in one, where they lie, which is the newest good one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/io/checkpoint.hpp"
#include "nn/module.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/schedule/schedule.hpp"

namespace collar::apps {

/// Where a run is: between two optimizer steps, or between the last one of an epoch and its
/// evaluation. With what has been measured so far and is yet to be told.
struct Position {
  std::int64_t step = 0;   ///< optimizer steps made
  std::int64_t epoch = 0;  ///< under way
  std::int64_t batch = 0;  ///< batches of this epoch that every rank has done
  double loss_sum = 0;     ///< over the steps of this epoch
  double best_top1 = -1;   ///< per cent, over the epochs that are over
  std::int64_t best_epoch = 0;
  bool finished = false;  ///< everything asked for was done

  friend bool operator==(const Position&, const Position&) = default;
};

/// The objects whose state is kept.
struct Trained {
  nn::Module& model;
  nn::Optimizer& optimizer;
  nn::Schedule& schedule;
};

/// What a checkpoint says besides tensors.
struct CheckpointInfo {
  Position position;
  std::int64_t photos = 0;     ///< of the training set
  std::string config;          ///< the run's config.toml
  nlohmann::json description;  ///< classes, preprocessing, model: for people and other programs
};

void save_checkpoint(const std::filesystem::path& path, const Trained& trained,
                     const CheckpointInfo& info);

/// Reads what save_checkpoint wrote, without the tensors. Throws FileError for another kind of
/// file.
CheckpointInfo read_checkpoint_info(const CheckpointFile& file);

/// Sets model, optimizer and schedule to the state of a checkpoint. Throws FileError if it does not
/// fit one of them, after which none of them is to be used: some may have been set.
void restore_checkpoint(const CheckpointFile& file, const Trained& trained);

/// "step-120.collar"
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);

/// Whether the folder holds files of our naming, good or bad. Throws FileError if it cannot be
/// read.
bool holds_checkpoints(const std::filesystem::path& folder);

/// The checkpoint of the highest step in the folder whose every checksum is right. Damaged ones are
/// passed over and `warn` is told why. Throws FileError if the folder cannot be read.
std::optional<CheckpointFile> newest_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& warn);

/// Moves the checkpoints of steps after `step` into a folder superseded/ inside `folder`: when a
/// run goes on from an older one, they are the future of another run. Returns that folder; empty if
/// there were none.
std::filesystem::path set_aside_later(const std::filesystem::path& folder, std::int64_t step);

/// Removes all checkpoints of the folder but the `keep` of the highest steps. Only files of our
/// naming count.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

}  // namespace collar::apps
