// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/core/error.hpp"

namespace collar {
namespace {

// Eight sizes for each doubling: at most an eighth of a block is wasted, and shapes that differ a
// little (the last batch) share blocks.
std::size_t rounded(std::size_t bytes) {
  std::size_t step = CachingAllocator::kAlignment;
  while (step * 16 <= bytes) step *= 2;
  return std::max(step, (bytes + step - 1) / step * step);
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  trim();
  for (const auto& [block, size] : block_size_) std::free(block);
}

void* CachingAllocator::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  void* block = nullptr;
  const auto free_list = cache_.find(size);
  if (free_list != cache_.end() && !free_list->second.empty()) {
    block = free_list->second.back();
    free_list->second.pop_back();
  } else {
    block = std::aligned_alloc(kAlignment, size);
    if (block == nullptr) {
      throw DeviceError(fmt::format(
          "out of memory: {} bytes wanted, {} in use, {} cached; a smaller batch needs less", size,
          statistics_.bytes_in_use, statistics_.bytes_reserved - statistics_.bytes_in_use));
    }
    ++statistics_.system_allocations;
    statistics_.bytes_reserved += size;
  }
  block_size_.emplace(block, size);
  statistics_.bytes_in_use += size;
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  return block;
}

void CachingAllocator::deallocate(void* block) noexcept {
  if (block == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto entry = block_size_.find(block);
  if (entry == block_size_.end()) return;
  statistics_.bytes_in_use -= entry->second;
  cache_[entry->second].push_back(block);
  block_size_.erase(entry);
}

void CachingAllocator::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : cache_) {
    for (void* block : blocks) std::free(block);
    statistics_.bytes_reserved -= size * blocks.size();
  }
  cache_.clear();
}

CachingAllocator::Statistics CachingAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace collar
