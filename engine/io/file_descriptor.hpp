// SPDX-License-Identifier: Apache-2.0
// FileDescriptor owns one descriptor of the kernel; system_error_text says what errno meant.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace collar {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.descriptor_, -1));
    return *this;
  }

  /// -1 if there is none.
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void reset(int descriptor = -1) noexcept;

 private:
  int descriptor_ = -1;
};

/// "Connection refused (errno 111)"
std::string system_error_text(int error_number);

/// Writes all of it, whatever comes; a descriptor that nobody reads is no reason to stop.
void write_all(int descriptor, std::string_view text);

}  // namespace collar
