// SPDX-License-Identifier: Apache-2.0
// Starting one rank: a program in a process group of its own that dies with its launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace collar::apps {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct RankCommand {
  std::string program;                 ///< a path, see find_program
  std::vector<std::string> arguments;  ///< with argument 0
  Variables variables;                 ///< added to the environment, replacing those there
  int output = -1;                     ///< becomes stdout and stderr; -1 leaves them as they are
};

/// The file that a shell would run for this name. Throws UsageError if there is none.
std::string find_program(const std::string& name);

/// Starts the program by vfork and exec: no copy of this process ever runs C++ code. Its input is
/// /dev/null, its signals are unblocked, and the kernel kills it when the calling thread ends.
/// Throws UsageError with the system's reason if it cannot be run.
pid_t start(const RankCommand& command);

}  // namespace collar::apps
