// SPDX-License-Identifier: Apache-2.0
// Numbers and text as the bytes of a file: little endian, and never read beyond the end.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/error.hpp"

namespace collar {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory, and files are little endian");

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void put(T value) {
    put(std::as_bytes(std::span(&value, 1)));
  }
  void put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(std::string_view text) { put(std::as_bytes(std::span(text))); }
  /// Zeros up to the next multiple.
  void pad_to(std::size_t multiple) {
    bytes_.resize((bytes_.size() + multiple - 1) / multiple * multiple);
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote. `what` names the bytes in the FileError thrown when there are too
/// few of them.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string what)
      : bytes_(bytes), what_(std::move(what)) {}

  template <std::unsigned_integral T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size() - position_) {
      throw FileError(fmt::format("{}: ends at byte {}, {} bytes too early", what_, bytes_.size(),
                                  count - (bytes_.size() - position_)));
    }
    position_ += count;
    return bytes_.subspan(position_ - count, count);
  }
  std::string take_text(std::size_t count) {
    std::string text(count, '\0');
    const auto bytes = take(count);
    if (count > 0) std::memcpy(text.data(), bytes.data(), count);
    return text;
  }
  /// Skips to the next multiple, counted from the start.
  void skip_to(std::size_t multiple) { take((multiple - position_ % multiple) % multiple); }
  bool at_end() const { return position_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::string what_;
  std::size_t position_ = 0;
};

}  // namespace collar
