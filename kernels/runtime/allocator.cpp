// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {
namespace {

// Eight sizes for each doubling: at most an eighth of a block is wasted, and shapes that differ a
// little (the last batch) share blocks.
std::size_t rounded(std::size_t bytes) {
  std::size_t step = CachingAllocator::kAlignment;
  while (step <= bytes / 16) step *= 2;
  return std::max(step, (bytes + step - 1) / step * step);
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  return_cached_blocks();
  for (const Block& block : in_use_) std::free(block.memory);
}

void* CachingAllocator::allocate(std::size_t bytes) {
  // More than half of all addresses is never there, and would overflow when rounded.
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
  const std::size_t size = rounded(std::min(bytes, kMost));
  const std::lock_guard lock(mutex_);
  CachedBlocks::node_type block = take_cached(size);
  if (block.empty()) block = take_from_system(size);
  void* const memory = block.value().memory;
  in_use_.insert(std::move(block));
  statistics_.bytes_in_use += size;
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  return memory;
}

std::shared_ptr<std::byte> CachingAllocator::allocate_shared(std::size_t bytes) {
  return {static_cast<std::byte*>(allocate(bytes)),
          [self = shared_from_this()](std::byte* block) { self->deallocate(block); }};
}

void CachingAllocator::deallocate(void* memory) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto block = in_use_.find({memory, 0});
  assert(block != in_use_.end() && "deallocate: not a block of this allocator, or freed twice");
  if (block == in_use_.end()) return;
  statistics_.bytes_in_use -= block->size;
  cached_.insert(in_use_.extract(block));
}

void CachingAllocator::trim() noexcept {
  const std::lock_guard lock(mutex_);
  return_cached_blocks();
}

CachingAllocator::Statistics CachingAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

CachingAllocator::CachedBlocks::node_type CachingAllocator::take_cached(std::size_t size) {
  const auto [first, end] = cached_.equal_range({nullptr, size});
  return first == end ? CachedBlocks::node_type{} : cached_.extract(std::prev(end));
}

CachingAllocator::CachedBlocks::node_type CachingAllocator::take_from_system(std::size_t size) {
  CachedBlocks fresh{{nullptr, size}};  // first the node: nothing may throw once there is memory
  CachedBlocks::node_type block = fresh.extract(fresh.begin());
  void*& memory = block.value().memory;
  memory = std::aligned_alloc(kAlignment, size);
  if (memory == nullptr && !cached_.empty()) {
    return_cached_blocks();
    memory = std::aligned_alloc(kAlignment, size);
  }
  if (memory == nullptr) {
    throw DeviceError(
        fmt::format("out of memory: {} bytes wanted, {} in use; a smaller batch needs less", size,
                    statistics_.bytes_in_use));
  }
  ++statistics_.system_allocations;
  statistics_.bytes_reserved += size;
  return block;
}

void CachingAllocator::return_cached_blocks() noexcept {
  for (const Block& block : cached_) {
    std::free(block.memory);
    statistics_.bytes_reserved -= block.size;
  }
  cached_.clear();
}

}  // namespace collar
