// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/screen.hpp"

#include <unistd.h>

#include "apps/accelerate/printable.hpp"
#include "engine/io/file_descriptor.hpp"

namespace collar::apps {

void say(std::string_view text) {
  write_all(STDERR_FILENO, printable_lines(text));
}

}  // namespace collar::apps
