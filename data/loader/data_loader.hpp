// SPDX-License-Identifier: Apache-2.0
// DataLoader: a data set as a sequence of batches. Which samples a batch holds, and every bit of
// them, depends on the options, the epoch and the share of the job; never on threads or timing.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset/dataset.hpp"
#include "data/loader/batch.hpp"
#include "data/loader/epoch_plan.hpp"
#include "data/loader/prefetcher.hpp"
#include "data/sampler/epoch_order.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::data {

struct LoaderOptions {
  std::int64_t batch_size = 1;  ///< of one logical rank; of all together with split_batches
  bool shuffle = false;
  std::uint64_t seed = 0;          ///< of the order and of the random transforms
  int workers = available_cpus();  ///< threads that decode; 0: the thread that asks for a batch
  int prefetch = 4;                ///< batches made in advance
  bool drop_last = false;
  bool even_batches = true;  ///< for more than one rank: see Sharding
  bool split_batches = false;
  ShuffleOrder shuffle_order = ShuffleOrder::torch;
};

class DataLoader {
 public:
  /// The data set outlives the loader; its pipeline makes images of one size. Throws UsageError
  /// otherwise, and for options that make no sense.
  explicit DataLoader(const Dataset& dataset, const LoaderOptions& options = {});

  /// One pass over the data. Reading it blocks until the next batch is there.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    Iterator(std::unique_ptr<Prefetcher> batches, std::function<void(Batch&)> on_batch)
        : batches_(std::move(batches)), on_batch_(std::move(on_batch)) {
      ++*this;
    }
    const Batch& operator*() const { return *current_; }
    const Batch* operator->() const { return &*current_; }
    Iterator& operator++() {
      current_.reset();  // its memory may serve the batch after next
      current_ = batches_->next();
      if (current_ && on_batch_) on_batch_(*current_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.current_; }

   private:
    std::unique_ptr<Prefetcher> batches_;
    std::function<void(Batch&)> on_batch_;
    std::optional<Batch> current_;
  };

  /// Begins a pass, which is an epoch: the next pass will be the next one, whether or not this one
  /// is read to its end. Throws DataError with the file's name at the batch that cannot be made.
  /// Breaking off in the middle is fine. Several passes may be under way at once.
  Iterator begin();
  static std::default_sentinel_t end() { return {}; }

  /// Batches of one logical rank in an epoch: what steps and schedules are counted by. If ranks
  /// have different numbers, the largest of this process.
  std::int64_t size() const;
  /// Batches a whole pass yields: those of all logical ranks of this process.
  std::int64_t batches_per_pass() const;
  const Dataset& dataset() const { return dataset_; }
  const LoaderOptions& options() const { return options_; }
  const LoaderShare& share() const { return share_; }

  /// Which epoch the next pass is.
  std::int64_t epoch() const { return epoch_; }
  /// Throws UsageError for a negative one.
  void set_epoch(std::int64_t epoch);
  /// The next pass leaves out the first `batches` batches of each rank, without reading them. A
  /// whole number of steps, or all of an epoch; UsageError otherwise.
  void start_at(std::int64_t batches);
  /// Called with each batch of every pass that begins from now on, before the loop sees it: a run
  /// moves its tensors to a device there, and learns whose turn it is.
  void set_on_batch(std::function<void(Batch&)> on_batch) { on_batch_ = std::move(on_batch); }
  /// Takes a share of a job instead of all of it. For each step, each of the own ranks has its
  /// micro-batches, fewer at the end of an epoch. Throws UsageError if that cannot be.
  void shard(std::int64_t ranks, std::vector<int> own, int micro_batches_per_step = 1);

 private:
  Sharding sharding() const;

  const Dataset& dataset_;
  LoaderOptions options_;
  ImageSize size_;
  LoaderShare share_;
  std::int64_t epoch_ = 0;
  std::int64_t skip_ = 0;
  std::function<void(Batch&)> on_batch_;
  std::shared_ptr<TensorPool> pool_;
};

}  // namespace collar::data
