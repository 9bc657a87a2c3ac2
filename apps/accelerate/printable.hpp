// SPDX-License-Identifier: Apache-2.0
// Names of files and classes, and what other processes print, are outside bytes: before they reach
// a terminal, what would steer it is made visible.
#pragma once

#include <string>
#include <string_view>

namespace collar::apps {

/// The text with control characters, but tabs, as \xNN. UTF-8 stays as it is.
std::string printable(std::string_view text);
/// The same for each line of the text, each of which ends in a line end.
std::string printable_lines(std::string_view text);

}  // namespace collar::apps
