// SPDX-License-Identifier: Apache-2.0
// The caching allocator of host memory: freed blocks are kept and handed out again, so that a
// training step whose shapes repeat takes nothing from the system. Blocks are aligned to 64 bytes.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace collar {

class CachingAllocator {
 public:
  static constexpr std::size_t kAlignment = 64;

  struct Statistics {
    std::uint64_t system_allocations = 0;  ///< how often memory was taken from the system
    std::size_t bytes_reserved = 0;        ///< held, in use or cached
    std::size_t bytes_in_use = 0;
    std::size_t peak_bytes_in_use = 0;
  };

  CachingAllocator() = default;
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// At least `bytes` bytes, uninitialised. Zero bytes give a valid, unique pointer. Throws
  /// DeviceError with the sizes when the system has no more.
  void* allocate(std::size_t bytes);
  /// Gives a block of allocate() back to the cache.
  void deallocate(void* block) noexcept;
  /// Returns all cached blocks to the system.
  void trim() noexcept;
  Statistics statistics() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> cache_;    // size -> free blocks, last freed first
  std::unordered_map<void*, std::size_t> block_size_;  // blocks in use
  Statistics statistics_;
};

}  // namespace collar
