// SPDX-License-Identifier: Apache-2.0
#include "data/loader/data_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

constexpr int kMostWorkers = 1024;

ImageSize output_size(const Dataset& dataset) {
  const std::optional<ImageSize> size = dataset.pipeline().output_size();
  if (!size) {
    throw UsageError(
        "the images of a batch have one size: end the transforms of the data set with "
        "Resize(height, width), CenterCrop or RandomResizedCrop");
  }
  return *size;
}

void check(const LoaderOptions& options) {
  if (options.batch_size < 1) {
    throw UsageError(fmt::format("a batch size of {} is impossible", options.batch_size));
  }
  if (options.workers < 0 || options.workers > kMostWorkers) {
    throw UsageError(
        fmt::format("{} workers are impossible; 0 to {} are", options.workers, kMostWorkers));
  }
  if (options.prefetch < 1) {
    throw UsageError(fmt::format("a prefetch of {} batches is impossible; at least 1 is needed",
                                 options.prefetch));
  }
}

}  // namespace

DataLoader::DataLoader(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset), options_(options), size_(output_size(dataset)) {
  check(options);
  shard(1, {0});
}

Sharding DataLoader::sharding() const {
  Sharding result{
      .samples = dataset_.size(), .batch_size = options_.batch_size, .ranks = share_.ranks};
  if (options_.split_batches)
    result = Sharding::split(result.samples, result.batch_size, result.ranks);
  // A single rank keeps its short last batch: accelerate leaves such a loader as it is.
  result.even_batches = options_.even_batches && share_.ranks > 1;
  result.drop_last = options_.drop_last;
  return result;
}

void DataLoader::shard(std::int64_t ranks, std::vector<int> own, int micro_batches_per_step) {
  const bool inside = std::ranges::all_of(own, [&](int rank) { return rank >= 0 && rank < ranks; });
  const bool distinct = std::set<int>(own.begin(), own.end()).size() == own.size();
  if (own.empty() || !inside || !distinct) {
    throw UsageError(
        fmt::format("ranks {} are no part of a job of {}", fmt::join(own, ", "), ranks));
  }
  if (micro_batches_per_step < 1) {
    throw UsageError(fmt::format("{} micro-batches a step are impossible", micro_batches_per_step));
  }
  LoaderShare share{ranks, std::move(own), micro_batches_per_step};
  std::swap(share_, share);
  try {
    sharding().validate();
  } catch (...) {
    std::swap(share_, share);
    throw;
  }
  skip_ = 0;
  pool_ = TensorPool::create(sharding().batch_size * Image::kChannels * size_.pixels());
}

std::int64_t DataLoader::size() const {
  const Sharding rule = sharding();
  std::int64_t longest = 0;
  for (const int rank : share_.own) longest = std::max(longest, rule.batches(rank));
  return longest;
}

std::int64_t DataLoader::batches_per_pass() const {
  const Sharding rule = sharding();
  std::int64_t sum = 0;
  for (const int rank : share_.own) sum += rule.batches(rank);
  return sum;
}

void DataLoader::set_epoch(std::int64_t epoch) {
  if (epoch < 0 || epoch > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format("there is no epoch {}", epoch));
  }
  epoch_ = epoch;
}

void DataLoader::start_at(std::int64_t batches) {
  const bool whole_steps = batches % share_.micro_batches_per_step == 0 || batches == size();
  if (batches < 0 || batches > size() || !whole_steps) {
    throw UsageError(fmt::format("cannot start at batch {} of {} with {} micro-batches a step",
                                 batches, size(), share_.micro_batches_per_step));
  }
  skip_ = batches;
}

DataLoader::Iterator DataLoader::begin() {
  const ShuffleOrder order = options_.shuffle ? options_.shuffle_order : ShuffleOrder::sequential;
  EpochPlan plan(epoch_order(dataset_.size(), order, options_.seed, epoch_), sharding(), share_,
                 skip_);
  const Prefetcher::Settings settings{options_.seed, epoch_, options_.workers, options_.prefetch};
  auto batches = std::make_unique<Prefetcher>(dataset_, std::move(plan), size_, pool_, settings);
  ++epoch_;
  skip_ = 0;
  return {std::move(batches), on_batch_};
}

}  // namespace collar::data
