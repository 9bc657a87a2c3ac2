// SPDX-License-Identifier: Apache-2.0
// In which order an epoch visits the samples: a pure function of seed and epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace collar::data {

enum class ShuffleOrder : std::uint8_t {
  sequential,
  torch,  ///< torch.randperm under the seed `seed + epoch`: accelerate's seedable sampler
  philox  ///< Collar's permutation() of the stream (seed, shuffle, epoch)
};

/// A permutation of 0 … size-1. Throws UsageError for a negative size or epoch, and for sizes that
/// the rule does not cover.
std::vector<std::int64_t> epoch_order(std::int64_t size, ShuffleOrder order, std::uint64_t seed,
                                      std::int64_t epoch);

}  // namespace collar::data
