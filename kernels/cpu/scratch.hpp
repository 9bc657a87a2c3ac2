// SPDX-License-Identifier: Apache-2.0
// Memory that a kernel needs for the length of one call, from the context's allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// `count` elements, uninitialised.
template <typename T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Scratch(CpuContext& context, std::int64_t count)
      : allocator_(context.allocator()),
        data_(static_cast<T*>(allocator_.allocate(static_cast<std::size_t>(count) * sizeof(T)))) {}
  ~Scratch() { allocator_.deallocate(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }

 private:
  CachingAllocator& allocator_;
  T* data_;
};

}  // namespace collar::kernels
