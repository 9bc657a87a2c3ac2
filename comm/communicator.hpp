// SPDX-License-Identifier: Apache-2.0
// Communicator: the ranks of a job as one group that sums, copies and waits together. What the
// calls mean is said here once for all backends (HostCommunicator now; each of them only has to
// carry out an Operation).
//
// Calls of all ranks must be the same in the same order; ranks that disagree all get the same
// RankLostError showing both sides, and so they do when a rank dies, leaves or is silent beyond the
// timeout. After that every call fails with it. Calls with a Work return at once; the buffers must
// stay until its wait() has returned.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/checked_operations.hpp"
#include "comm/transport/operation.hpp"
#include "comm/work.hpp"

namespace collar::comm {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `send` and `receive` may be the same buffer. Pointers are aligned to their element type; counts
  // may be zero.

  /// receive = the combination of all ranks' send. Same count on all ranks.
  void all_reduce(ConstElements send, Elements receive, Reduction how = {});
  void all_reduce(Elements values, Reduction how = {}) { all_reduce(values, values, how); }
  Work all_reduce_async(ConstElements send, Elements receive, Reduction how = {});
  Work all_reduce_async(Elements values, Reduction how = {}) {
    return all_reduce_async(values, values, how);
  }
  /// send has size() parts of receive's count; receive = part rank() of the combination. `receive`
  /// may be that part of `send`.
  void reduce_scatter(ConstElements send, Elements receive, Reduction how = {});
  Work reduce_scatter_async(ConstElements send, Elements receive, Reduction how = {});
  /// receive = all ranks' send, one after the other. `send` may be its own part of `receive`.
  void all_gather(ConstElements send, Elements receive);
  Work all_gather_async(ConstElements send, Elements receive);
  /// values of the root, on all ranks.
  void broadcast(Elements values, int root);
  Work broadcast_async(Elements values, int root);
  /// As all_reduce, but only the root's receive is written; the others may leave it out.
  void reduce(ConstElements send, Elements receive, int root, Reduction how = {});
  Work reduce_async(ConstElements send, Elements receive, int root, Reduction how = {});
  /// Returns when all ranks have called it.
  void barrier();
  /// Matching sends and receives have the same count and type. Only the two ranks take part; a send
  /// may return before it is received.
  void send(ConstElements values, int peer);
  void receive(Elements values, int peer);
  Work send_async(ConstElements values, int peer);
  Work receive_async(Elements values, int peer);

  /// Zeroed memory in which collectives of buffers at the same place on all ranks run fastest (in
  /// place, without copies). Called by all ranks with the same number of bytes. May outlive the
  /// communicator.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;

  /// Ends the group: every rank's present and later calls throw RankLostError with this reason.
  virtual void abort(const std::string& reason) = 0;

 protected:
  /// Carries out a checked operation after all that were given before; `run` returns when it is
  /// done.
  virtual Work start(Operation operation) = 0;
  virtual void run(Operation operation) = 0;

 private:
  GroupMember me() const { return {rank(), size()}; }
};

}  // namespace collar::comm
