// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of one host. Each rank's memory is an anonymous file (memfd) handed to
// the others over unix sockets, so nothing has a name and nothing is left behind, whoever is killed
// when. The sockets stay open: their end is the end of the peer.
#pragma once

#include <memory>
#include <string>

#include "comm/rendezvous/store.hpp"
#include "comm/transport/fabric.hpp"

namespace collar::comm {

struct HostGroupOptions {
  int rank = 0;
  int size = 1;
  std::string token;  ///< the job's token
};

/// Meets the other ranks at the store, which serves no other group, and connects to each of them.
/// Throws RankLostError that lists the ranks which did not come in time, UsageError where two
/// processes claim one rank, world sizes differ or a rank is on another host.
std::unique_ptr<Fabric> join_host_group(Store& store, const HostGroupOptions& options,
                                        Deadline deadline);

/// What tells hosts apart: the kernel's boot id and the network namespace, in which the unix
/// sockets live.
std::string host_identity();

}  // namespace collar::comm
