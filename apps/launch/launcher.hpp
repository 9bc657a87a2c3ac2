// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this machine and sees them through: one failure ends them all and
// names who failed first, signals reach every rank, and nothing is left running, not even if the
// launcher itself is killed.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/launch/rank_process.hpp"

namespace collar::apps {

/// A key press reaches every process of a terminal, and launchers pass it on besides: signals that
/// follow the first one within this time are the same request.
inline constexpr std::chrono::seconds kSameRequest{2};

struct LaunchOptions {
  int ranks = 1;                                 ///< 1 to 1024
  std::optional<std::filesystem::path> log_dir;  ///< gets rank-K.log of every rank but 0
  bool tee = false;                              ///< show the other ranks' lines too, as "[r2] …"
  std::chrono::milliseconds grace{10'000};       ///< from SIGTERM to SIGKILL after a failure
  std::chrono::milliseconds stop_grace{60'000};  ///< the same after Ctrl-C, SIGTERM, SIGUSR1
  int messages = 2;                              ///< descriptor the launcher writes to
};

/// Runs `command` (argument 0 is looked up in PATH) once for each rank and returns the job's exit
/// code: 0 if all ranks returned 0; otherwise the code of the rank that failed first, 6 if it was
/// killed by a signal. A rank that returns 75, 130 or 143 has stopped as it was asked to; then the
/// others have the time of `grace` to do so too, and it is what rank 0 returned. After Ctrl-C,
/// SIGTERM, SIGHUP or SIGUSR1, which are passed on, it is what rank 0 returned, or 128 + signal. A
/// second Ctrl-C kills, unless it comes so soon that it is the same one.
///
/// Each rank has its own process group, the environment described at rank_variables, and
/// /dev/null as input. Rank 0 writes where the launcher does; the others' output goes to logs.
/// Call it from the main thread while there are no others. Throws UsageError.
int launch_ranks(const std::vector<std::string>& command, const LaunchOptions& options);

/// RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torchrun sets them,
/// COLLAR_JOB_TOKEN, and OMP_NUM_THREADS, this rank's share of the CPUs, unless it is set already.
Variables rank_variables(int rank, int ranks, int port, const std::string& token);

}  // namespace collar::apps
