// SPDX-License-Identifier: Apache-2.0
// The operations of the operating system that a durable write is made of, behind an interface:
// tests put a file system in its place that fails, dies or forgets at any chosen operation
// (tests/support/faulty_files.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace collar {

/// Operations return what the system call returns, or -errno. None throws; close() gives up the
/// descriptor even when it fails.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  /// Creates a file that must not exist, for writing.
  virtual int create(const std::filesystem::path& path) = 0;
  /// Opens a folder, to synchronise its entries.
  virtual int open_folder(const std::filesystem::path& path) = 0;
  /// Allocates the first `bytes` bytes of an empty file, or fails as a write would.
  virtual int reserve(int descriptor, std::uint64_t bytes) = 0;
  /// Appends some of the bytes and returns how many.
  virtual std::int64_t write(int descriptor, std::span<const std::byte> bytes) = 0;
  virtual int sync(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual int remove(const std::filesystem::path& path) = 0;
  /// Bytes that can still be written to the file system of a folder; for messages only.
  virtual std::int64_t free_bytes(const std::filesystem::path& folder) = 0;
};

/// The operating system's.
std::shared_ptr<FileOperations> system_files();

}  // namespace collar
