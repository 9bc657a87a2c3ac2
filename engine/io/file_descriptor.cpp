// SPDX-License-Identifier: Apache-2.0
#include "engine/io/file_descriptor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace collar {

void FileDescriptor::reset(int descriptor) noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = descriptor;
}

std::string system_error_text(int error_number) {
  return fmt::format("{} (errno {})", std::generic_category().message(error_number), error_number);
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace collar
