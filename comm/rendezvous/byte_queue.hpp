// SPDX-License-Identifier: Apache-2.0
// ByteQueue: bytes of a connection, appended as they come and taken from the front. Taking moves
// nothing; what was taken is dropped once it is the larger part, so that a byte costs the same
// however many wait behind it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace collar::comm {

class ByteQueue {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return bytes_.size() - taken_; }
  const std::byte* data() const { return bytes_.data() + taken_; }

  void append(std::span<const std::byte> bytes) {
    if (2 * taken_ >= bytes_.size()) {
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
      taken_ = 0;
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// At most size() bytes.
  void take(std::size_t count) { taken_ += count; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;
};

}  // namespace collar::comm
