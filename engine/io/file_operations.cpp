// SPDX-License-Identifier: Apache-2.0
#include "engine/io/file_operations.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace collar {
namespace {

class SystemFiles final : public FileOperations {
 public:
  int create(const std::filesystem::path& path) override {
    return checked(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }

  int open_folder(const std::filesystem::path& path) override {
    return checked(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  // fallocate and not posix_fallocate: on file systems that cannot reserve, the latter writes every
  // block.
  int reserve(int descriptor, std::uint64_t bytes) override {
    return checked(::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)));
  }

  std::int64_t write(int descriptor, std::span<const std::byte> bytes) override {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // the kernel takes less than 2^31 at once
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), kMost));
    return written < 0 ? -errno : written;
  }

  int sync(int descriptor) override { return checked(::fsync(descriptor)); }
  int close(int descriptor) override { return checked(::close(descriptor)); }

  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return checked(std::rename(from.c_str(), to.c_str()));
  }

  int remove(const std::filesystem::path& path) override { return checked(::unlink(path.c_str())); }

  std::int64_t free_bytes(const std::filesystem::path& folder) override {
    struct statvfs info {};
    if (::statvfs(folder.c_str(), &info) < 0) return -errno;
    return static_cast<std::int64_t>(info.f_bavail * info.f_frsize);
  }

 private:
  static int checked(int result) { return result < 0 ? -errno : result; }
};

}  // namespace

std::shared_ptr<FileOperations> system_files() {
  return std::make_shared<SystemFiles>();
}

}  // namespace collar
