// SPDX-License-Identifier: Apache-2.0
// Replacing a file so that at every instant, whatever dies, its name stands for the whole old
// content or the whole new one: write beside it, fsync, close, rename, fsync the folder. Used for
// everything a run cannot afford to lose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "engine/io/file_operations.hpp"

namespace collar {

/// One replacement of one file. Without commit() the destructor removes what was written; on any
/// failure the old file is untouched. A failed operation is never tried again on the same file:
/// start a new one.
class DurableFile {
 public:
  /// Begins a file of exactly `size` bytes in the folder of `path`, under a temporary name, and
  /// reserves its space, so that a full disk is found before any byte is written. Throws FileError
  /// naming the path, the bytes needed and the bytes free.
  DurableFile(std::filesystem::path path, std::uint64_t size,
              std::shared_ptr<FileOperations> files = system_files());
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  /// Appends. Throws FileError, also for bytes beyond `size`.
  void write(std::span<const std::byte> bytes);
  /// Makes the file durable under its name. Throws FileError; if only the last step failed (fsync
  /// of the folder), the new file is in place but may not survive a power cut, and the message says
  /// so.
  void commit();

  /// Bytes appended so far.
  std::uint64_t position() const { return position_; }

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* what, std::int64_t error);
  void release();

  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  std::shared_ptr<FileOperations> files_;
  std::vector<std::byte> buffer_;  ///< small pieces, not written yet
  int file_descriptor_ = -1;
  int folder_descriptor_ = -1;
  bool exists_ = false;  ///< whether the temporary name has to be removed
};

/// The whole of a small file in one call.
void write_durably(const std::filesystem::path& path, std::span<const std::byte> content,
                   std::shared_ptr<FileOperations> files = system_files());

/// Removes the temporary files that killed processes left in a folder. Only for whoever is sure
/// that nobody is writing there.
void remove_temporaries(const std::filesystem::path& folder);

}  // namespace collar
