// SPDX-License-Identifier: Apache-2.0
// Text that came out of a file, made fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace collar {

/// In quotes, cut at 80 bytes, and with everything but printable ASCII escaped, so that a terminal
/// is safe from it.
std::string shown(std::string_view text);

}  // namespace collar
