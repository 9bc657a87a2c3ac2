// SPDX-License-Identifier: Apache-2.0
// Environment: which rank of which job this process is, read from the variables that launchers set:
// torchrun's (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; `collar
// launch` sets the same), Open MPI's, Slurm's and PMI's. No variable set means one process. Read
// strictly: half a job is an error, not a guess.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/rendezvous/socket.hpp"

namespace collar::comm {

struct Environment {
  static constexpr int kMaxWorldSize = 1024;

  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        ///< among the ranks of this host
  int local_world_size = 1;  ///< ranks of this host; all of them if the launcher does not say
  bool single_host = true;   ///< known to be a job of one host
  std::string launcher;  ///< "torchrun", "Open MPI", "Slurm", "PMI"; empty for a process of its own
  Endpoint store;        ///< where the store listens; an empty host where world_size is 1
  std::string job_token;  ///< COLLAR_JOB_TOKEN

  using Lookup = std::function<std::optional<std::string>(const std::string& variable)>;

  /// Throws UsageError that names the variable that is missing, no number, out of range or
  /// contradicts another.
  static Environment from_variables(const Lookup& lookup);
  /// From this process's own variables.
  static Environment from_process();
};

}  // namespace collar::comm
