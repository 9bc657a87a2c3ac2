// SPDX-License-Identifier: Apache-2.0
// The exit codes of every verb, and which error leads to which.
#pragma once

#include <exception>

namespace collar::apps {

enum class ExitCode : int {
  done = 0,
  check_failed = 1,  ///< a check the user asked for
  usage = 2,         ///< command line or configuration
  data = 3,
  file = 4,  ///< checkpoint or model file
  numerics = 5,
  rank_lost = 6,
  internal = 7,  ///< device, memory, or an error of Collar's own
  stopped_and_saved = 75,
  interrupted = 130,
  terminated = 143
};

inline int to_int(ExitCode code) {
  return static_cast<int>(code);
}

/// The code for an exception that nobody handled.
ExitCode exit_code_of(const std::exception& error);

}  // namespace collar::apps
