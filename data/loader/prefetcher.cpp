// SPDX-License-Identifier: Apache-2.0
#include "data/loader/prefetcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar::data {

Prefetcher::Prefetcher(const Dataset& dataset, EpochPlan plan, ImageSize size,
                       std::shared_ptr<TensorPool> pool, const Settings& settings)
    : dataset_(dataset),
      plan_(std::move(plan)),
      size_(size),
      pool_(std::move(pool)),
      settings_(settings),
      slots_(static_cast<std::size_t>(settings.workers == 0 ? 1 : settings.prefetch)) {
  open_slots();
  workers_.reserve(static_cast<std::size_t>(settings.workers));
  for (int i = 0; i < settings.workers; ++i) {
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

/// Gives slots to the batches that may be filled now. Called by the consumer, so that it is the
/// consumer who learns that memory is short.
void Prefetcher::open_slots() {
  const auto ring = static_cast<std::int64_t>(slots_.size());
  while (opened_ < std::min(plan_.size(), consumed_ + ring)) {
    Slot& free = slot(opened_);
    const EpochPlan::Entry& entry = plan_.entry(opened_);
    free = Slot{};
    free.batch.indices = plan_.samples(opened_);
    const std::int64_t rows = free.batch.rows();
    free.batch.images = pool_->take({rows, Image::kChannels, size_.height, size_.width});
    free.batch.labels = Tensor::empty({rows}, DType::i64);
    free.batch.valid = entry.valid;
    free.batch.epoch = settings_.epoch;
    free.batch.rank = entry.rank;
    free.batch.index = entry.index;
    free.batch.last = entry.last;
    free.rows_missing = rows;
    ++opened_;
  }
}

std::optional<Batch> Prefetcher::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (consumed_ == plan_.size()) return std::nullopt;
  Slot& current = slot(consumed_);
  if (workers_.empty()) {
    for (std::int64_t row = 0; row < current.batch.rows(); ++row) {
      finish_row(current, row, fill_row(current, row));
    }
  } else {
    batch_done_.wait(lock, [&] { return current.rows_missing == 0; });
  }
  if (current.error) std::rethrow_exception(current.error);
  Batch batch = std::move(current.batch);
  ++consumed_;
  open_slots();
  lock.unlock();
  work_there_.notify_all();
  batch.wait_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return batch;
}

void Prefetcher::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (work_there_.wait(lock, stop, [this] { return to_take_ < opened_; }) &&
         !stop.stop_requested()) {
    Slot& current = slot(to_take_);
    const std::int64_t row = current.rows_taken++;
    if (current.rows_taken == current.batch.rows()) ++to_take_;
    lock.unlock();
    std::exception_ptr error = fill_row(current, row);
    lock.lock();
    finish_row(current, row, std::move(error));
    if (current.rows_missing == 0) batch_done_.notify_one();
  }
}

std::exception_ptr Prefetcher::fill_row(Slot& slot, std::int64_t row) const noexcept {
  try {
    const std::int64_t index = slot.batch.indices[static_cast<std::size_t>(row)];
    Image image = dataset_.load(index);
    SampleRandom random(settings_.seed, static_cast<std::uint32_t>(settings_.epoch), index);
    float* chw = slot.batch.images.data<float>() + row * Image::kChannels * size_.pixels();
    try {
      dataset_.pipeline().run(std::move(image), random, chw);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", dataset_.name(index), error.what()));
    }
    slot.batch.labels.data<std::int64_t>()[row] = dataset_.label(index);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Of several bad rows of a batch the first one is reported, whoever was faster.
void Prefetcher::finish_row(Slot& slot, std::int64_t row, std::exception_ptr error) {
  --slot.rows_missing;
  if (error && (!slot.error || row < slot.bad_row)) {
    slot.error = std::move(error);
    slot.bad_row = row;
  }
}

}  // namespace collar::data
