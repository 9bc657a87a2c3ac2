// SPDX-License-Identifier: Apache-2.0
#include "data/decode/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "engine/io/file_descriptor.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view reason) {
  throw DataError(fmt::format("{}: {}", path.native(), reason));
}

[[noreturn]] void fail_with_errno(const std::filesystem::path& path) {
  fail(path, std::generic_category().message(errno));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

FileBytes read_file(const std::filesystem::path& path, std::size_t limit) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail_with_errno(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_with_errno(path);
  if (!S_ISREG(status.st_mode)) {
    fail(path, fmt::format("{}, not an image file", kind_of(status.st_mode)));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) fail(path, "the file is empty");
  if (size > limit) fail(path, fmt::format("{} bytes are more than the limit of {}", size, limit));

  FileBytes result{std::make_unique_for_overwrite<std::uint8_t[]>(size), size};
  for (std::size_t done = 0; done < size;) {
    const ssize_t count =
        ::pread(file.get(), result.data.get() + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(path);
    if (count == 0)
      fail(path, fmt::format("it shrank from {} to {} bytes while it was read", size, done));
    done += static_cast<std::size_t>(count);
  }
  return result;
}

}  // namespace collar::data
