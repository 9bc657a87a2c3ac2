// SPDX-License-Identifier: Apache-2.0
// Batch: what a loop over a DataLoader sees.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::data {

/// The tensors are on the host and own their memory together with the loader's pool: they may be
/// kept as long as one likes; the memory is used again when the last handle is gone.
struct Batch {
  Tensor images;                      ///< f32 [rows, 3, height, width], plain
  Tensor labels;                      ///< i64 [rows]
  std::vector<std::int64_t> indices;  ///< numbers of the samples in the data set

  /// Rows to count in metrics: the first `valid` ones are the epoch's only visit to their samples,
  /// the others repeat samples to fill the batch. Over all ranks, every sample is valid exactly
  /// once, and in the epoch's order (step by step, rank by rank).
  std::int64_t valid = 0;

  std::int64_t epoch = 0;
  int rank = 0;            ///< the logical rank this batch belongs to
  std::int64_t index = 0;  ///< its number among the batches of that rank
  bool last = false;       ///< the last one of that rank in this epoch

  double wait_seconds = 0;  ///< how long the caller waited for it

  std::int64_t rows() const { return static_cast<std::int64_t>(indices.size()); }
};

}  // namespace collar::data
