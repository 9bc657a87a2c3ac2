// SPDX-License-Identifier: Apache-2.0
// TensorPool: memory for batches that comes back when the last handle of a batch is gone, so that
// an epoch allocates no more than its batches in flight. The one place that knows what kind of
// memory that is.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::data {

class TensorPool : public std::enable_shared_from_this<TensorPool> {
 public:
  /// Each block has room for this many floats.
  static std::shared_ptr<TensorPool> create(std::int64_t floats) {
    return std::shared_ptr<TensorPool>(new TensorPool(floats));
  }

  /// An uninitialised f32 tensor of at most that size, in a block that is free or new. Thread-safe.
  Tensor take(const Shape& shape);
  /// Blocks made so far.
  std::size_t blocks() const;

 private:
  explicit TensorPool(std::int64_t floats) : floats_(floats) {}
  void give_back(Tensor block) noexcept;

  const std::int64_t floats_;
  mutable std::mutex mutex_;
  std::vector<Tensor> free_;
  std::size_t blocks_ = 0;
};

}  // namespace collar::data
