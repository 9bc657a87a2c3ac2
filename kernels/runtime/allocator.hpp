// SPDX-License-Identifier: Apache-2.0
// The caching allocator of host memory: freed blocks are kept and handed out again, so that a
// training step whose shapes repeat takes nothing from the system. Blocks are aligned to 64 bytes.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace collar {

class CachingAllocator : public std::enable_shared_from_this<CachingAllocator> {
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

  /// At least `bytes` bytes, uninitialised. Zero bytes give a valid, unique pointer. When the
  /// system has no more, the cache is given back to it first; throws DeviceError with the sizes if
  /// that does not help.
  void* allocate(std::size_t bytes);
  /// The same as a pointer that deallocates and keeps this allocator alive until then. The
  /// allocator must be owned by a shared_ptr.
  std::shared_ptr<std::byte> allocate_shared(std::size_t bytes);
  /// Gives a block of this allocator's allocate(), or null, back to the cache.
  void deallocate(void* block) noexcept;
  /// Returns all cached blocks to the system.
  void trim() noexcept;
  Statistics statistics() const;

 private:
  struct Block {
    void* memory;
    std::size_t size;
  };
  struct ByAddress {
    bool operator()(const Block& a, const Block& b) const { return less(a.memory, b.memory); }
    std::less<const void*> less;
  };
  struct BySize {
    bool operator()(const Block& a, const Block& b) const { return a.size < b.size; }
  };
  // Nodes move between the two, so only a block from the system needs memory of its own.
  using BlocksInUse = std::set<Block, ByAddress>;
  using CachedBlocks = std::multiset<Block, BySize>;  // of one size, the last freed is the last

  CachedBlocks::node_type take_cached(std::size_t size);
  CachedBlocks::node_type take_from_system(std::size_t size);
  void return_cached_blocks() noexcept;

  mutable std::mutex mutex_;
  BlocksInUse in_use_;
  CachedBlocks cached_;
  Statistics statistics_;
};

}  // namespace collar
