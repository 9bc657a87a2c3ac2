// SPDX-License-Identifier: Apache-2.0
// Direct algorithms for ranks that reach each other's memory: each rank owns a part, reads it from
// all ranks in blocks that fit the cache, and writes the result to all who want it while it is hot:
// one pass, two times the bytes per rank. Buffers of allocate() are used where they lie; others
// travel in pieces through the staging areas.
//
// Order of addition: exactly the tree of reduce_tree over the ranks, whatever the pieces.
#pragma once

#include "comm/transport/operation.hpp"
#include "comm/transport/transport.hpp"

namespace collar::comm::direct {

// All of these need transport.peer_memory().
void all_reduce(Transport& transport, const Operation& operation);
void reduce_scatter(Transport& transport, const Operation& operation);
void all_gather(Transport& transport, const Operation& operation);
void broadcast(Transport& transport, const Operation& operation);
void reduce(Transport& transport, const Operation& operation);

}  // namespace collar::comm::direct
