// SPDX-License-Identifier: Apache-2.0
// A backend's own copies of a weight: packed in the order its convolutions read, perhaps in bf16.
// They belong to the weight, not to the backend, and are refreshed when the master's version number
// has moved on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/core/view.hpp"

namespace collar {

class PackedWeights {
 public:
  struct Copy {
    std::shared_ptr<void> data;
    std::uint64_t version = 0;
  };

  /// The copy under a key that only the backend understands; empty (no data) at first.
  Copy& operator[](std::uint64_t key) { return copies_[key]; }

 private:
  std::map<std::uint64_t, Copy> copies_;
};

/// A weight as a kernel sees it: the plain f32 master, its version, and where packed copies are
/// kept.
struct Weight {
  ConstView master;
  std::uint64_t version = 0;
  PackedWeights* packed = nullptr;  ///< never null where a backend packs
};

}  // namespace collar
