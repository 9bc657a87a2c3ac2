// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/screen.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace collar::apps {

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void say(std::string_view text) {
  write_all(STDERR_FILENO, std::string(text) + "\n");
}

}  // namespace collar::apps
