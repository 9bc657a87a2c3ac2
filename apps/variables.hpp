// SPDX-License-Identifier: Apache-2.0
// The environment variables Collar listens to. One that is misspelt would do nothing, silently.
#pragma once

#include <string>
#include <vector>

namespace collar::apps {

/// A line for each variable COLLAR_… of this process that is none of ours but nearly one, saying
/// which. Nothing in ranks that another process has started and warned for.
std::vector<std::string> misspelt_variables();

}  // namespace collar::apps
