// SPDX-License-Identifier: Apache-2.0
// WindowRegistry: which memory allocate() has given out, so that a pointer can be turned into the
// same place of another rank. Shared by the transport and the allocations, because these may
// outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "comm/transport/fabric.hpp"

namespace collar::comm {

class WindowRegistry {
 public:
  /// A place is the same number on all ranks for the same offset of the same allocation.
  static constexpr std::uint64_t kNotShared = 0;
  static constexpr std::uint64_t kNothing = 1;  ///< the place of a null pointer

  /// `id` counts allocations, from 0, alike on all ranks.
  void add(std::uint64_t id, Window window, int rank);
  void remove(std::uint64_t id);

  std::uint64_t place_of(const void* pointer, std::size_t bytes) const;
  /// Null for a null pointer. The pointer lies in a window.
  void* counterpart(int peer, const void* local) const;

 private:
  struct Entry {
    std::uint64_t id;
    Window window;
  };
  using Entries = std::map<const std::byte*, Entry>;  // by the beginning of this rank's segment
  /// The window that begins at or before the pointer, or end().
  Entries::const_iterator at_or_before(const std::byte* pointer) const;

  mutable std::mutex mutex_;
  Entries entries_;
};

}  // namespace collar::comm
