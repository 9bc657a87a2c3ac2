// SPDX-License-Identifier: Apache-2.0
// What a collective algorithm stands on. Every transport can exchange bytes between ranks (the ring
// needs no more); a transport whose ranks share memory offers PeerMemory besides, which the direct
// algorithms use. One virtual call moves a whole chunk, so its cost does not show.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "comm/transport/operation.hpp"
#include "comm/transport/reduce.hpp"

namespace collar::comm {

struct Outgoing {
  int peer;
  const void* data;
  std::size_t bytes;
};

/// What a rank receives is stored, or, with a reduction, combined with what is there
/// (collar::comm::combine).
struct Incoming {
  int peer;
  void* data;
  std::size_t bytes;
  const Reduction* reduction = nullptr;
  DType dtype = DType::u8;  ///< of the values, where they are combined
};

/// Messages of collectives and of send/receive never mix, whatever their order on the two sides.
enum class Lane { collective, message };

/// The memory of all ranks, seen from this one.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// Whether the buffers of the operation that was begun last lie, on all ranks, at the same place
  /// of memory that allocate() gave: then `counterpart` reaches them.
  virtual bool buffers_are_shared() const = 0;
  /// Where rank `peer` has what lies at `local` here. Null stays null.
  virtual void* counterpart(int peer, const void* local) const = 0;
  /// One of two halves of a rank's staging area, through which other buffers travel.
  virtual std::span<std::byte> staging(int peer, int half) const = 0;
  /// Returns when all ranks have come here; what they wrote before is visible then.
  virtual void barrier() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Begins an operation of all ranks: returns when all have announced the same one, and throws
  /// RankLostError with both sides where they disagree. Waits of the operation share one deadline,
  /// `timeout` from here.
  virtual void begin(const Operation& operation, std::chrono::nanoseconds timeout) = 0;
  /// Begins a send or receive, which concerns two ranks only.
  virtual void begin_message(const Operation& operation, std::chrono::nanoseconds timeout) = 0;
  /// Marks the operation as done, for the messages of others that look for a culprit.
  virtual void end() noexcept = 0;

  /// Completes all these transfers, at most one each way with any peer, in whatever order they
  /// progress. Bytes between two ranks arrive in the order in which they were sent.
  virtual void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                        Lane lane = Lane::collective) = 0;

  /// Null where ranks share no memory.
  virtual PeerMemory* peer_memory() = 0;
  /// Memory that peers can reach, aligned to a page and zeroed: all ranks call this with the same
  /// number of bytes, between begin() and end(). It may outlive the transport.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;

  /// Ends the group: every rank's present and later operations throw RankLostError with the first
  /// such reason.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace collar::comm
