// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/window_registry.hpp"

#include <iterator>

namespace collar::comm {
namespace {

constexpr int kOffsetBits = 40;

}  // namespace

void WindowRegistry::add(std::uint64_t id, Window window, int rank) {
  const std::lock_guard lock(mutex_);
  const std::byte* begin = window.segments[static_cast<std::size_t>(rank)];
  entries_.emplace(begin, Entry{id, std::move(window)});
}

void WindowRegistry::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.id == id; });
}

WindowRegistry::Entries::const_iterator WindowRegistry::at_or_before(
    const std::byte* pointer) const {
  const auto after = entries_.upper_bound(pointer);
  return after == entries_.begin() ? entries_.end() : std::prev(after);
}

std::uint64_t WindowRegistry::place_of(const void* pointer, std::size_t bytes) const {
  if (pointer == nullptr) return kNothing;
  const auto* local = static_cast<const std::byte*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto found = at_or_before(local);
  if (found == entries_.end()) return kNotShared;
  const auto& [id, window] = found->second;
  const auto offset = static_cast<std::size_t>(local - found->first);
  if (offset > window.bytes || bytes > window.bytes - offset) return kNotShared;
  return (id + 1) << kOffsetBits | offset;
}

void* WindowRegistry::counterpart(int peer, const void* local) const {
  if (local == nullptr) return nullptr;
  const auto* pointer = static_cast<const std::byte*>(local);
  const std::lock_guard lock(mutex_);
  const auto found = at_or_before(pointer);
  return found->second.window.segments[static_cast<std::size_t>(peer)] + (pointer - found->first);
}

}  // namespace collar::comm
