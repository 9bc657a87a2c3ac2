// SPDX-License-Identifier: Apache-2.0
// Reading files that came from somewhere else: the size is fixed when the file is opened, every
// read is whole or an error, and nothing is allocated that the file has not been seen to hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace collar {

/// A regular file open for reading. Reads at a position; may be used from several threads. A file
/// that shrinks meanwhile is an error of the read, not a signal (which is why nothing is mapped).
class InputFile {
 public:
  /// Throws FileError if there is no such regular file or it may not be read. Never waits (a FIFO
  /// is refused).
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  /// Bytes, as of opening.
  std::uint64_t size() const { return size_; }
  /// Fills `out` from byte `offset`. Throws FileError if the file does not hold them all.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// The same as text.
  std::string read_text_at(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  void check_range(std::uint64_t offset, std::uint64_t bytes) const;

  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

/// The whole of a file of at most `limit` bytes. Throws FileError if it is larger.
std::string read_text(const std::filesystem::path& path, std::uint64_t limit);

}  // namespace collar
