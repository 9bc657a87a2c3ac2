// SPDX-License-Identifier: Apache-2.0
// What is written for people to see, and must never be a reason to stop: the screen may be gone, or
// be a file on a disk that is full.
#pragma once

#include <string_view>

namespace collar::apps {

/// A line on stderr.
void say(std::string_view text);

}  // namespace collar::apps
