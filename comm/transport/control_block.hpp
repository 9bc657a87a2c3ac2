// SPDX-License-Identifier: Apache-2.0
// The layout of what ranks share: for each rank a control block, a mailbox from every other rank
// (one a lane) and a staging area; and one abort notice, in rank 0's segment. All words are
// lock-free atomics, valid when zero, so that fresh shared memory needs no initialisation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/transport/transport.hpp"

namespace collar::comm {

inline constexpr std::size_t kLine =
    64;  // a cache line: words of different writers never share one

using SharedWord = std::atomic<std::uint64_t>;
using SharedFlag = std::atomic<std::uint32_t>;
static_assert(SharedWord::is_always_lock_free && SharedFlag::is_always_lock_free &&
              sizeof(SharedFlag) == 4);

/// An operation as its rank announced it, and where its buffers lie (see
/// SharedMemoryTransport::place_of).
struct alignas(kLine) Announcement {
  SharedWord kind, count, scale;
  SharedWord send_place, receive_place;

  void write(const Fingerprint& fingerprint, std::uint64_t send, std::uint64_t receive) {
    kind.store(fingerprint.kind, std::memory_order_relaxed);
    count.store(fingerprint.count, std::memory_order_relaxed);
    scale.store(fingerprint.scale, std::memory_order_relaxed);
    send_place.store(send, std::memory_order_relaxed);
    receive_place.store(receive, std::memory_order_relaxed);
  }
  Fingerprint fingerprint() const {
    return {kind.load(std::memory_order_relaxed), count.load(std::memory_order_relaxed),
            scale.load(std::memory_order_relaxed)};
  }
};

/// Written by its rank alone, but for the doorbell.
struct ControlBlock {
  /// How many operations and barriers this rank has come to. Publishes what was written before.
  alignas(kLine) SharedWord arrivals;
  /// The operations of all ranks, even and odd: a rank overwrites one only when all have read it.
  Announcement announced[2];
  /// The latest operation of either lane, for messages about this rank.
  Announcement latest;
  alignas(kLine) SharedWord begun;  ///< operations begun, of both lanes
  SharedWord finished;              ///< … and finished
  SharedWord heartbeat;             ///< moves while this rank waits
  SharedFlag left;                  ///< this rank has closed its transport
  /// Sleeping: peers that change something this rank may wait for increment `doorbell` and wake it
  /// (a futex).
  alignas(kLine) SharedFlag sleeping;
  SharedFlag doorbell;
};

/// The reason why the group has ended; the first to write it wins.
struct AbortNotice {
  enum State : std::uint32_t { kEmpty = 0, kWriting = 1, kWritten = 2 };
  static constexpr std::size_t kReasonBytes = 1016;

  alignas(kLine) SharedFlag state;
  char reason[kReasonBytes];
};

/// A stream of bytes from one rank to another, in the receiver's segment. Positions only grow.
struct Mailbox {
  alignas(kLine) SharedWord written;
  alignas(kLine) SharedWord read;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + sizeof(Mailbox); }
};

/// Where these things lie in a segment.
class SegmentLayout {
 public:
  SegmentLayout(int ranks, std::size_t staging_bytes);

  std::size_t bytes() const { return bytes_; }
  std::size_t mailbox_capacity() const { return mailbox_capacity_; }
  std::size_t staging_half() const { return staging_half_; }

  static ControlBlock& control(std::byte* segment) {
    return *reinterpret_cast<ControlBlock*>(segment);
  }
  static AbortNotice& abort_notice(std::byte* segment) {
    return *reinterpret_cast<AbortNotice*>(segment + sizeof(ControlBlock));
  }
  Mailbox& mailbox(std::byte* segment, int from, Lane lane) const {
    const auto index = static_cast<std::size_t>(2 * from + (lane == Lane::message ? 1 : 0));
    return *reinterpret_cast<Mailbox*>(segment + mailboxes_ +
                                       index * (sizeof(Mailbox) + mailbox_capacity_));
  }
  std::byte* staging(std::byte* segment, int half) const {
    return segment + staging_ + static_cast<std::size_t>(half) * staging_half_;
  }

 private:
  std::size_t mailbox_capacity_, staging_half_;
  std::size_t mailboxes_, staging_, bytes_;
};

}  // namespace collar::comm
