// SPDX-License-Identifier: Apache-2.0
// From an Environment to a Communicator: meets the other ranks and chooses the transport.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/host_communicator.hpp"
#include "comm/rendezvous/environment.hpp"

namespace collar::comm {

struct CommunicatorOptions {
  HostOptions host;
  /// How long ranks wait for each other at the start.
  std::chrono::milliseconds join_timeout{60'000};

  /// With what the process's variables say: COLLAR_ALGO (see AlgorithmTable), COLLAR_TIMEOUT and
  /// COLLAR_JOIN_TIMEOUT (seconds). Throws UsageError.
  static CommunicatorOptions from_process();
};

/// Called by every rank of the job. A world of one rank needs no store and no other process. Throws
/// UsageError for what is set up wrongly (address taken, wrong token, rank claimed twice, other
/// host), RankLostError naming the ranks that do not come in time.
std::unique_ptr<Communicator> create_communicator(
    const Environment& environment,
    const CommunicatorOptions& options = CommunicatorOptions::from_process());

/// n communicators for n threads of this process, by rank.
std::vector<std::unique_ptr<Communicator>> create_thread_communicators(
    int size, const HostOptions& options = {});

}  // namespace collar::comm
