// SPDX-License-Identifier: Apache-2.0
// Whole regular files in memory. Asks what a path is before it reads, so that a directory or a pipe
// with an image's name is an error and not a wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace collar::data {

struct FileBytes {
  std::unique_ptr<std::uint8_t[]> data;
  std::size_t size = 0;

  std::span<const std::uint8_t> bytes() const { return {data.get(), size}; }
};

/// Throws DataError that names the path: it does not exist, may not be read, is no regular file, is
/// empty, is larger than `limit`, or shrank while it was read.
FileBytes read_file(const std::filesystem::path& path, std::size_t limit);

}  // namespace collar::data
