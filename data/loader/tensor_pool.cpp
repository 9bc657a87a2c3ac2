// SPDX-License-Identifier: Apache-2.0
#include "data/loader/tensor_pool.hpp"

#include <utility>

namespace collar::data {

Tensor TensorPool::take(const Shape& shape) {
  Tensor block;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      block = Tensor::empty({floats_});
      free_.reserve(++blocks_);  // so that giving back cannot fail
    } else {
      block = std::move(free_.back());
      free_.pop_back();
    }
  }
  float* data = block.data<float>();
  // The owner holds the block; its end brings the block home, if the pool still exists.
  std::shared_ptr<void> owner(data, [block, pool = weak_from_this()](void*) mutable {
    if (const auto alive = pool.lock()) alive->give_back(std::move(block));
  });
  return Tensor::adopt(data, shape, DType::f32, std::move(owner));
}

std::size_t TensorPool::blocks() const {
  const std::lock_guard lock(mutex_);
  return blocks_;
}

void TensorPool::give_back(Tensor block) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace collar::data
