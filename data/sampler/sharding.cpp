// SPDX-License-Identifier: Apache-2.0
#include "data/sampler/sharding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/core/error.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::data {

Sharding Sharding::split(std::int64_t samples, std::int64_t batch_size, std::int64_t ranks) {
  if (ranks <= 0 || batch_size <= 0 || batch_size % ranks != 0) {
    throw UsageError(
        fmt::format("a batch of {} cannot be split evenly over {} ranks", batch_size, ranks));
  }
  return {.samples = samples, .batch_size = batch_size / ranks, .ranks = ranks};
}

void Sharding::validate() const {
  if (samples < 0 || batch_size <= 0 || ranks <= 0) {
    throw UsageError(fmt::format("cannot deal out {} samples in batches of {} to {} ranks", samples,
                                 batch_size, ranks));
  }
}

std::int64_t Sharding::batches(std::int64_t rank) const {
  const std::int64_t round = batch_size * ranks;
  if (drop_last) return samples / round;
  if (even_batches) return ceil_div(samples, round);
  return std::max<std::int64_t>(0, ceil_div(samples - rank * batch_size, round));
}

Sharding::Batch Sharding::batch(std::int64_t rank, std::int64_t k) const {
  const std::int64_t begin = (k * ranks + rank) * batch_size;
  const std::int64_t valid = std::clamp<std::int64_t>(samples - begin, 0, batch_size);
  return {begin, even_batches ? batch_size : valid, valid};
}

}  // namespace collar::data
