// SPDX-License-Identifier: Apache-2.0
#include "engine/io/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    throw FileError(
        fmt::format("{}: cannot open: {}", path_.string(), std::generic_category().message(errno)));
  struct stat info {};
  std::string trouble;
  if (::fstat(descriptor_, &info) < 0)
    trouble = std::generic_category().message(errno);
  else if (S_ISDIR(info.st_mode))
    trouble = "is a folder, expected a file";
  else if (!S_ISREG(info.st_mode))
    trouble = "is not a regular file";
  if (!trouble.empty()) {
    ::close(std::exchange(descriptor_, -1));
    throw FileError(fmt::format("{}: {}", path_.string(), trouble));
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  path_.swap(other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void InputFile::check_range(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset <= size_ && bytes <= size_ - offset) return;
  throw FileError(fmt::format("{}: wants {} bytes from byte {} of a file of {}", path_.string(),
                              bytes, offset, size_));
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  check_range(offset, out.size());
  while (!out.empty()) {
    const std::size_t most = std::min(out.size(), std::size_t{1} << 30);
    const ssize_t got = ::pread(descriptor_, out.data(), most, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw FileError(fmt::format("{}: cannot read at byte {}: {}", path_.string(), offset,
                                  std::generic_category().message(errno)));
    }
    if (got == 0) {
      throw FileError(fmt::format("{}: ends at byte {}; it had {} bytes when it was opened",
                                  path_.string(), offset, size_));
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string InputFile::read_text_at(std::uint64_t offset, std::uint64_t bytes) const {
  check_range(offset, bytes);
  std::string text(bytes, '\0');
  read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string read_text(const std::filesystem::path& path, std::uint64_t limit) {
  const InputFile file(path);
  if (file.size() > limit) {
    throw FileError(
        fmt::format("{}: has {} bytes, expected at most {}", path.string(), file.size(), limit));
  }
  return file.read_text_at(0, file.size());
}

}  // namespace collar
