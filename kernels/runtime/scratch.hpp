// SPDX-License-Identifier: Apache-2.0
// A block of the context's memory for the length of a scope.
#pragma once

#include "kernels/runtime/allocator.hpp"

namespace collar {

class Scratch {
 public:
  Scratch(CachingAllocator& allocator, std::size_t bytes)
      : allocator_(allocator), data_(allocator.allocate(bytes)) {}
  ~Scratch() { allocator_.deallocate(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }

 private:
  CachingAllocator& allocator_;
  void* data_;
};

}  // namespace collar
