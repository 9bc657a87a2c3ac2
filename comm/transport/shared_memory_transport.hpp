// SPDX-License-Identifier: Apache-2.0
// SharedMemoryTransport: ranks that share memory, be they threads or processes (the Fabric knows).
// Mailboxes carry exchange(), control blocks carry announcements and barriers, and every wait spins
// briefly, yields, then sleeps on a futex in short naps between which it looks for an abort, a dead
// peer and its deadline.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/control_block.hpp"
#include "comm/transport/fabric.hpp"
#include "comm/transport/transport.hpp"
#include "comm/transport/window_registry.hpp"

namespace collar::comm {

class SharedMemoryTransport final : public Transport, public PeerMemory {
 public:
  static constexpr std::size_t kDefaultStagingBytes = std::size_t{512} << 10;

  /// All ranks construct theirs with the same number of staging bytes.
  SharedMemoryTransport(std::unique_ptr<Fabric> fabric, Deadline deadline,
                        std::size_t staging_bytes = kDefaultStagingBytes);
  /// Tells the peers that this rank has left.
  ~SharedMemoryTransport() override;
  SharedMemoryTransport(const SharedMemoryTransport&) = delete;
  SharedMemoryTransport& operator=(const SharedMemoryTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void begin(const Operation& operation, std::chrono::nanoseconds timeout) override;
  void begin_message(const Operation& operation, std::chrono::nanoseconds timeout) override;
  void end() noexcept override;
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                Lane lane) override;
  PeerMemory* peer_memory() override { return this; }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  void abort(const std::string& reason) noexcept override;

  bool buffers_are_shared() const override { return buffers_are_shared_; }
  void* counterpart(int peer, const void* local) const override;
  std::span<std::byte> staging(int peer, int half) const override;
  void barrier() override;

 private:
  struct Transfer;

  ControlBlock& control(int rank) const { return SegmentLayout::control(segment(rank)); }
  std::byte* segment(int rank) const { return group_.segments[static_cast<std::size_t>(rank)]; }
  AbortNotice& abort_notice() const { return SegmentLayout::abort_notice(segment(0)); }

  void note_latest(const Operation& operation, std::chrono::nanoseconds timeout);
  void compare_announcements();
  void ring(int peer) const noexcept;
  bool push(const Outgoing& outgoing, std::size_t& done, Lane lane);
  bool pull(const Incoming& incoming, std::size_t& done, Lane lane);

  /// Returns once ready() holds. `involves(peer)` says whom it depends on. Throws RankLostError.
  template <typename Ready, typename Involves>
  void wait(Ready ready, Involves involves);
  template <typename Involves>
  void look_for_trouble(Involves involves);
  template <typename Involves>
  [[noreturn]] void give_up(Involves involves);
  void throw_if_aborted() const;
  /// Ends the group with this reason, or the one that came before it.
  [[noreturn]] void fail(const std::string& reason);
  std::string account_of(int peer) const;

  std::unique_ptr<Fabric> fabric_;
  int rank_, size_;
  bool crowded_;
  pid_t process_;
  SegmentLayout layout_;
  Window group_;
  std::shared_ptr<WindowRegistry> registry_ = std::make_shared<WindowRegistry>();
  std::uint64_t windows_ = 0;     // allocations so far
  std::uint64_t operations_ = 0;  // of all ranks: which announcement is current
  std::uint64_t arrivals_ = 0;
  bool buffers_are_shared_ = false;
  Deadline deadline_;
  std::array<std::vector<std::uint64_t>, 2> sent_,
      received_;  // [lane][peer]: positions of mailboxes
};

}  // namespace collar::comm
