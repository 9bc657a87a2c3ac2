// SPDX-License-Identifier: Apache-2.0
#include "data/loader/epoch_plan.hpp"

#include <algorithm>
#include <utility>

namespace collar::data {

EpochPlan::EpochPlan(std::vector<std::int64_t> order, const Sharding& sharding,
                     const LoaderShare& share, std::int64_t skip)
    : order_(std::move(order)), sharding_(sharding) {
  std::int64_t longest = 0;
  for (const int rank : share.own) longest = std::max(longest, sharding.batches(rank));
  for (std::int64_t begin = skip; begin < longest; begin += share.micro_batches_per_step) {
    for (const int rank : share.own) {
      const std::int64_t count = sharding.batches(rank);
      const std::int64_t end = std::min(begin + share.micro_batches_per_step, count);
      for (std::int64_t k = begin; k < end; ++k) {
        entries_.push_back({rank, k, k + 1 == count, sharding.batch(rank, k).valid});
      }
    }
  }
}

std::vector<std::int64_t> EpochPlan::samples(std::int64_t i) const {
  const Entry& wanted = entry(i);
  const Sharding::Batch batch = sharding_.batch(wanted.rank, wanted.index);
  std::vector<std::int64_t> result(static_cast<std::size_t>(batch.size));
  for (std::int64_t row = 0; row < batch.size; ++row) {
    const auto position = static_cast<std::size_t>((batch.begin + row) % sharding_.samples);
    result[static_cast<std::size_t>(row)] = order_[position];
  }
  return result;
}

}  // namespace collar::data
