// SPDX-License-Identifier: Apache-2.0
// EpochPlan: which batches one process takes in one epoch, in which order, made of which samples.
// Pure arithmetic; it is what makes a loader's results independent of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sampler/sharding.hpp"

namespace collar::data {

/// The part of a job that one process plays.
struct LoaderShare {
  std::int64_t ranks = 1;          ///< logical ranks of the whole job
  std::vector<int> own{0};         ///< those of this process, in the order they take their turns
  int micro_batches_per_step = 1;  ///< that a rank takes before the next one has its turn
};

class EpochPlan {
 public:
  struct Entry {
    int rank = 0;
    std::int64_t index = 0;  ///< batch of that rank
    bool last = false;       ///< of that rank
    std::int64_t valid = 0;  ///< rows that do not repeat
  };

  /// `order` is the epoch's permutation of the samples. For each step, each own rank has its
  /// micro-batches, fewer at the end of the epoch. The first `skip` batches of every rank are left
  /// out.
  EpochPlan(std::vector<std::int64_t> order, const Sharding& sharding, const LoaderShare& share,
            std::int64_t skip);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  const Entry& entry(std::int64_t i) const { return entries_[static_cast<std::size_t>(i)]; }
  /// The samples of an entry, row by row.
  std::vector<std::int64_t> samples(std::int64_t i) const;

 private:
  std::vector<std::int64_t> order_;
  Sharding sharding_;
  std::vector<Entry> entries_;
};

}  // namespace collar::data
