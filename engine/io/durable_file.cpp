// SPDX-License-Identifier: Apache-2.0
#include "engine/io/durable_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// ".name.0123456789abcdef.tmp": hidden, recognisable, and another one for every attempt.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  std::random_device entropy;
  const std::uint64_t id = (std::uint64_t{entropy()} << 32) | entropy();
  return folder_of(path) / fmt::format(".{}.{:016x}.tmp", path.filename().string(), id);
}

bool is_temporary_name(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  constexpr std::size_t kTail = 1 + 16 + kEnd.size();
  if (!name.starts_with('.') || !name.ends_with(kEnd) || name.size() < 2 + kTail) return false;
  const std::string_view id = name.substr(name.size() - kTail, kTail - kEnd.size());
  return id.front() == '.' && id.find_first_not_of("0123456789abcdef", 1) == id.npos;
}

/// Repeats an operation that a signal interrupted.
template <typename Operation>
auto uninterrupted(Operation&& operation) {
  auto result = operation();
  while (result == -EINTR) result = operation();
  return result;
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path, std::uint64_t size,
                         std::shared_ptr<FileOperations> files)
    : path_(std::move(path)),
      folder_(folder_of(path_)),
      temporary_(temporary_name(path_)),
      size_(size),
      files_(std::move(files)) {
  if (!path_.has_filename())
    throw FileError(fmt::format("'{}' names no file that could be written", path_.string()));
  buffer_.reserve(kBufferBytes);
  // The folder comes first: after the rename nothing but its fsync may be left to fail.
  folder_descriptor_ = uninterrupted([this] { return files_->open_folder(folder_); });
  if (folder_descriptor_ < 0) fail("cannot open its folder", folder_descriptor_);
  file_descriptor_ = uninterrupted([this] { return files_->create(temporary_); });
  if (file_descriptor_ < 0) fail("cannot create a file beside it", file_descriptor_);
  exists_ = true;
  if (size_ == 0) return;
  const int reserved = uninterrupted([this] { return files_->reserve(file_descriptor_, size_); });
  const bool unsupported = reserved == -EOPNOTSUPP || reserved == -ENOSYS;
  if (reserved < 0 && !unsupported) fail("cannot reserve its space", reserved);
}

DurableFile::~DurableFile() {
  release();
}

void DurableFile::write(std::span<const std::byte> bytes) {
  if (bytes.size() > size_ - position_) {
    throw FileError(fmt::format("{}: {} bytes were announced, byte {} is being written",
                                path_.string(), size_, position_ + bytes.size()));
  }
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes)
    write_through(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void DurableFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void DurableFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::int64_t written =
        uninterrupted([&] { return files_->write(file_descriptor_, bytes); });
    if (written < 0) fail("cannot write", written);
    if (written == 0) fail("cannot write", -EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void DurableFile::commit() {
  if (position_ != size_) {
    throw FileError(fmt::format("{}: {} bytes were announced, only {} written", path_.string(),
                                size_, position_));
  }
  flush();
  // After a failed fsync the kernel may have dropped the data and call it clean: no second try.
  const int synced = uninterrupted([this] { return files_->sync(file_descriptor_); });
  if (synced < 0) fail("cannot make it durable (fsync)", synced);
  const int closed = files_->close(std::exchange(file_descriptor_, -1));
  if (closed < 0 && closed != -EINTR) fail("cannot close", closed);
  const int renamed = uninterrupted([this] { return files_->rename(temporary_, path_); });
  if (renamed < 0) fail("cannot rename the new file to it", renamed);
  exists_ = false;
  const int listed = uninterrupted([this] { return files_->sync(folder_descriptor_); });
  if (listed < 0)
    fail("is in place, but may not survive a power cut: cannot fsync its folder", listed);
  release();
}

void DurableFile::fail(const char* what, std::int64_t error) {
  std::string message =
      fmt::format("{}: {}: {} (needs {} bytes", path_.string(), what,
                  std::generic_category().message(static_cast<int>(-error)), size_);
  if (const std::int64_t free = files_->free_bytes(folder_); free >= 0)
    message += fmt::format(", {} are free", free);
  release();
  throw FileError(message + ")");
}

void DurableFile::release() {
  if (file_descriptor_ >= 0) files_->close(std::exchange(file_descriptor_, -1));
  if (std::exchange(exists_, false)) uninterrupted([this] { return files_->remove(temporary_); });
  if (folder_descriptor_ >= 0) files_->close(std::exchange(folder_descriptor_, -1));
}

void write_durably(const std::filesystem::path& path, std::span<const std::byte> content,
                   std::shared_ptr<FileOperations> files) {
  DurableFile file(path, content.size(), std::move(files));
  file.write(content);
  file.commit();
}

void remove_temporaries(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!is_temporary_name(entry.path().filename().native())) continue;
    std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace collar
