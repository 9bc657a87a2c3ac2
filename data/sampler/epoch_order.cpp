// SPDX-License-Identifier: Apache-2.0
#include "data/sampler/epoch_order.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "engine/random.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {

std::vector<std::int64_t> epoch_order(std::int64_t size, ShuffleOrder order, std::uint64_t seed,
                                      std::int64_t epoch) {
  if (size < 0 || epoch < 0 || epoch > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format("there is no order of {} samples in epoch {}", size, epoch));
  }
  if (order == ShuffleOrder::torch) {
    return TorchGenerator(seed + static_cast<std::uint64_t>(epoch)).randperm(size);
  }
  if (order == ShuffleOrder::philox) {
    RandomStream stream({seed, Purpose::shuffle, static_cast<std::uint32_t>(epoch), 0});
    return permutation(size, stream);
  }
  std::vector<std::int64_t> result(static_cast<std::size_t>(size));
  std::iota(result.begin(), result.end(), std::int64_t{0});
  return result;
}

}  // namespace collar::data
