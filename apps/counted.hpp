// SPDX-License-Identifier: Apache-2.0
// Numbers in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collar::apps {

/// "12,345"; of numbers from 0 on.
std::string with_thousands(std::int64_t number);

/// "1 epoch", "1,200 photos", "3 classes"
std::string counted(std::int64_t number, std::string_view noun);

}  // namespace collar::apps
