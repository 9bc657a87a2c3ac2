// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/deadline.hpp"

#include <fmt/format.h>

namespace collar::comm {

std::string seconds_text(std::chrono::nanoseconds duration) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace collar::comm
