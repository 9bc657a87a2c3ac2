// SPDX-License-Identifier: Apache-2.0
// The ring: rank r sends only to r + 1 and receives only from r - 1, so every link is busy all the
// time and the largest message is a part, count / n. Needs nothing of a transport but exchange(),
// which streams a part in pieces: while one piece is reduced, the next is in flight.
//
// Order of addition: part p is summed along the ring in rank order p+1, p+2, …, p (indices mod n),
// one addition at a time; with reduce_scatter and reduce likewise. This is not the tree of
// reduce_tree for n > 2 (for n = 2 it is, since a + b = b + a). bf16 and f16 are rounded after
// every addition, because they travel as such.
#pragma once

#include "comm/transport/operation.hpp"
#include "comm/transport/transport.hpp"

namespace collar::comm::ring {

/// n - 1 steps that leave every rank with one reduced part, n - 1 that hand the parts round.
void all_reduce(Transport& transport, const Operation& operation);
void reduce_scatter(Transport& transport, const Operation& operation);
void all_gather(Transport& transport, const Operation& operation);
/// A chain from the root: each rank passes on one segment while it receives the next.
void broadcast(Transport& transport, const Operation& operation);
/// The reducing half of all_reduce, then every rank sends its part to the root.
void reduce(Transport& transport, const Operation& operation);

}  // namespace collar::comm::ring
