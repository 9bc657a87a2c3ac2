// SPDX-License-Identifier: Apache-2.0
// Which samples of an epoch a rank gets: accelerate's BatchSamplerShard in closed form. All four of
// its modes are one rule. The samples, in the epoch's order, are dealt out in batches of
// `batch_size`, batch k of rank r being the (k * ranks + r)-th; what follows the last sample begins
// again with the first. Batches that are split over the ranks are the same rule with batches
// smaller by the number of ranks.
#pragma once

#include <cstdint>

namespace collar::data {

struct Sharding {
  std::int64_t samples = 0;
  std::int64_t batch_size = 1;  ///< of one rank
  std::int64_t ranks = 1;
  bool even_batches =
      true;  ///< all ranks get equally many full batches; the last ones repeat samples
  bool drop_last = false;  ///< instead, what does not fill a batch on every rank is left out

  /// `batch_size` is that of all ranks together. Throws UsageError unless they divide it.
  static Sharding split(std::int64_t samples, std::int64_t batch_size, std::int64_t ranks);
  /// Throws UsageError for sizes that are not positive.
  void validate() const;

  /// Positions in the epoch's order: begin, begin + 1, …, begin + size - 1, each modulo `samples`.
  /// The first `valid` rows are the first visit of their sample; the others repeat.
  struct Batch {
    std::int64_t begin = 0;
    std::int64_t size = 0;
    std::int64_t valid = 0;
  };

  /// How many batches a rank gets. (accelerate's len() says one more for some ranks if batches are
  /// split and uneven; it yields as many as this.)
  std::int64_t batches(std::int64_t rank) const;
  Batch batch(std::int64_t rank, std::int64_t k) const;
};

}  // namespace collar::data
