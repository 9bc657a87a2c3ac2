// SPDX-License-Identifier: Apache-2.0
// Prefetcher: carries out one EpochPlan with worker threads. Batches are filled ahead of the
// consumer in a ring of slots; workers take one sample after the other, in order, and write it
// where it belongs. Its destructor stops and joins them at any time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/dataset/dataset.hpp"
#include "data/loader/batch.hpp"
#include "data/loader/epoch_plan.hpp"
#include "data/loader/tensor_pool.hpp"

namespace collar::data {

class Prefetcher {
 public:
  struct Settings {
    std::uint64_t seed = 0;  ///< of the random transforms
    std::int64_t epoch = 0;
    int workers = 0;   ///< 0: the consumer's thread does the work
    int prefetch = 1;  ///< batches filled or being filled while the consumer is busy
  };

  /// The data set outlives the prefetcher and gives images of `size`.
  Prefetcher(const Dataset& dataset, EpochPlan plan, ImageSize size,
             std::shared_ptr<TensorPool> pool, const Settings& settings);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next batch of the plan, or nothing at its end. Waits as long as its files take to be read:
  /// nothing can take back a read that the system does not answer. Throws what went wrong with the
  /// first bad row of that batch; a DataError names the file.
  std::optional<Batch> next();

 private:
  struct Slot {
    Batch batch;
    std::int64_t rows_taken = 0;
    std::int64_t rows_missing = 0;
    std::int64_t bad_row = 0;
    std::exception_ptr error;
  };

  Slot& slot(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
  void open_slots();
  void work(const std::stop_token& stop);
  std::exception_ptr fill_row(Slot& slot, std::int64_t row) const noexcept;
  void finish_row(Slot& slot, std::int64_t row, std::exception_ptr error);

  const Dataset& dataset_;
  const EpochPlan plan_;
  const ImageSize size_;
  const std::shared_ptr<TensorPool> pool_;
  const Settings settings_;

  std::mutex mutex_;  // guards what follows; a row's floats belong to the thread that took it
  std::condition_variable_any work_there_;
  std::condition_variable batch_done_;
  std::vector<Slot> slots_;            // batch i is in slot i modulo their number
  std::int64_t consumed_ = 0;          // batches handed out
  std::int64_t opened_ = 0;            // batches that have a slot, or had one
  std::int64_t to_take_ = 0;           // the batch whose rows are taken at present
  std::vector<std::jthread> workers_;  // last: they end before the rest does
};

}  // namespace collar::data
