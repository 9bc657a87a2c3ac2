// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/file_descriptor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "comm/rendezvous/deadline.hpp"

namespace collar::comm {

void FileDescriptor::reset(int descriptor) noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = descriptor;
}

std::string system_error_text(int error_number) {
  return fmt::format("{} (errno {})", std::generic_category().message(error_number), error_number);
}

std::string seconds_text(std::chrono::nanoseconds duration) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace collar::comm
