// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/shared_memory_transport.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <thread>

#include "kernels/core/error.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::comm {
namespace {

// The stages of a wait: a few microseconds of spinning, some hundred of yielding, then naps.
constexpr int kSpins = 100;
constexpr std::chrono::microseconds kYielding(300);
constexpr std::chrono::milliseconds kNap(50);
/// How long a rank that has waited in vain watches the heartbeats of the others to find the silent
/// one.
constexpr std::chrono::milliseconds kHeartbeatWatch(200);

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

void sleep_on(SharedFlag& word, std::uint32_t value, std::chrono::nanoseconds duration) {
  const timespec time{static_cast<time_t>(duration.count() / 1'000'000'000),
                      static_cast<long>(duration.count() % 1'000'000'000)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void wake(SharedFlag& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

constexpr std::size_t round_down_to_line(std::size_t value) {
  return value / kLine * kLine;
}

std::size_t index_of(Lane lane) {
  return lane == Lane::message ? 1 : 0;
}

}  // namespace

SharedMemoryTransport::SharedMemoryTransport(std::unique_ptr<Fabric> fabric, Deadline deadline,
                                             std::size_t staging_bytes)
    : fabric_(std::move(fabric)),
      rank_(fabric_->rank()),
      size_(fabric_->size()),
      crowded_(fabric_->is_crowded()),
      process_(::getpid()),
      layout_(size_, staging_bytes),
      group_(fabric_->share(layout_.bytes(), deadline)),
      deadline_(deadline) {
  for (auto* positions : {&sent_, &received_})
    for (auto& lane : *positions) lane.resize(static_cast<std::size_t>(size_), 0);
}

SharedMemoryTransport::~SharedMemoryTransport() {
  if (::getpid() != process_) return;  // a forked child: the group is its parent's
  control(rank_).left.store(1);
  for (int peer = 0; peer < size_; ++peer) ring(peer);
}

void SharedMemoryTransport::note_latest(const Operation& operation,
                                        std::chrono::nanoseconds timeout) {
  throw_if_aborted();
  deadline_ = Deadline::after(timeout);
  control(rank_).latest.write(fingerprint_of(operation), 0, 0);
  control(rank_).begun.fetch_add(1, std::memory_order_relaxed);
}

void SharedMemoryTransport::begin(const Operation& operation, std::chrono::nanoseconds timeout) {
  note_latest(operation, timeout);
  // Which buffers peers reach into: of a reduce_scatter only what is sent, of an all_gather only
  // what is received.
  const auto n = static_cast<std::size_t>(size_);
  const bool scatters = operation.collective == Collective::reduce_scatter;
  const bool gathers = operation.collective == Collective::all_gather;
  ++operations_;
  control(rank_).announced[operations_ % 2].write(
      fingerprint_of(operation),
      registry_->place_of(gathers ? nullptr : operation.send,
                          operation.bytes() * (scatters ? n : 1)),
      registry_->place_of(scatters ? nullptr : operation.receive,
                          operation.bytes() * (gathers ? n : 1)));
  barrier();
  compare_announcements();
}

void SharedMemoryTransport::begin_message(const Operation& operation,
                                          std::chrono::nanoseconds timeout) {
  note_latest(operation, timeout);
}

void SharedMemoryTransport::end() noexcept {
  control(rank_).finished.fetch_add(1, std::memory_order_relaxed);
}

void SharedMemoryTransport::compare_announcements() {
  const auto announced = [&](int rank) -> const Announcement& {
    return control(rank).announced[operations_ % 2];
  };
  const std::uint64_t send_place = announced(0).send_place.load(std::memory_order_relaxed);
  const std::uint64_t receive_place = announced(0).receive_place.load(std::memory_order_relaxed);
  buffers_are_shared_ =
      send_place != WindowRegistry::kNotShared && receive_place != WindowRegistry::kNotShared;
  for (int peer = 0; peer < size_; ++peer) {
    if (announced(peer).fingerprint() != announced(0).fingerprint())
      fail(fmt::format("ranks disagree: in operation {}, rank {} called {}, but rank 0 called {}",
                       operations_, peer, comm::describe(announced(peer).fingerprint()),
                       comm::describe(announced(0).fingerprint())));
    if (announced(peer).send_place.load(std::memory_order_relaxed) != send_place ||
        announced(peer).receive_place.load(std::memory_order_relaxed) != receive_place)
      buffers_are_shared_ = false;
  }
}

void SharedMemoryTransport::barrier() {
  control(rank_).arrivals.store(++arrivals_);
  for (int peer = 0; peer < size_; ++peer) ring(peer);
  const auto missing = [&](int peer) { return control(peer).arrivals.load() < arrivals_; };
  int next = 0;
  wait(
      [&] {
        while (next < size_ && !missing(next)) ++next;
        return next == size_;
      },
      missing);
}

void SharedMemoryTransport::ring(int peer) const noexcept {
  ControlBlock& block = control(peer);
  if (block.sleeping.load() == 0) return;
  block.doorbell.fetch_add(1);
  wake(block.doorbell);
}

bool SharedMemoryTransport::push(const Outgoing& outgoing, std::size_t& done, Lane lane) {
  Mailbox& box = layout_.mailbox(segment(outgoing.peer), rank_, lane);
  std::uint64_t& position = sent_[index_of(lane)][static_cast<std::size_t>(outgoing.peer)];
  const std::size_t capacity = layout_.mailbox_capacity();
  const std::size_t space = capacity - (position - box.read.load());
  const std::size_t left = outgoing.bytes - done;
  // A quarter at a time, so that the receiver works on one piece while the next is written.
  std::size_t n = std::min({left, space, capacity / 4, capacity - position % capacity});
  if (n < left) n = round_down_to_line(n);
  if (n == 0) return false;
  std::memcpy(box.data() + position % capacity, static_cast<const std::byte*>(outgoing.data) + done,
              n);
  done += n;
  position += round_up(n, kLine);
  box.written.store(position);
  ring(outgoing.peer);
  return true;
}

bool SharedMemoryTransport::pull(const Incoming& incoming, std::size_t& done, Lane lane) {
  Mailbox& box = layout_.mailbox(segment(rank_), incoming.peer, lane);
  std::uint64_t& position = received_[index_of(lane)][static_cast<std::size_t>(incoming.peer)];
  const std::size_t capacity = layout_.mailbox_capacity();
  const std::size_t available = box.written.load() - position;
  const std::size_t n =
      std::min({incoming.bytes - done, available, capacity / 4, capacity - position % capacity});
  if (n == 0) return false;
  const std::byte* from = box.data() + position % capacity;
  std::byte* to = static_cast<std::byte*>(incoming.data) + done;
  if (incoming.reduction == nullptr)
    std::memcpy(to, from, n);
  else
    combine(incoming.dtype, *incoming.reduction, to, from, n / size_of(incoming.dtype));
  done += n;
  position += round_up(n, kLine);
  box.read.store(position);
  ring(incoming.peer);
  return true;
}

void SharedMemoryTransport::exchange(std::span<const Outgoing> outgoing,
                                     std::span<const Incoming> incoming, Lane lane) {
  std::vector<std::size_t> sent(outgoing.size(), 0);
  std::vector<std::size_t> received(incoming.size(), 0);
  // Moves what can be moved. Whoever is left with bytes to go is waited for.
  const auto move = [&] {
    bool moved = false;
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      if (sent[i] < outgoing[i].bytes) moved |= push(outgoing[i], sent[i], lane);
    for (std::size_t i = 0; i < incoming.size(); ++i)
      if (received[i] < incoming[i].bytes) moved |= pull(incoming[i], received[i], lane);
    return moved;
  };
  const auto involves = [&](int peer) {
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      if (outgoing[i].peer == peer && sent[i] < outgoing[i].bytes) return true;
    for (std::size_t i = 0; i < incoming.size(); ++i)
      if (incoming[i].peer == peer && received[i] < incoming[i].bytes) return true;
    return false;
  };
  const auto finished = [&] {
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      if (sent[i] < outgoing[i].bytes) return false;
    for (std::size_t i = 0; i < incoming.size(); ++i)
      if (received[i] < incoming[i].bytes) return false;
    return true;
  };
  while (!finished()) wait(move, involves);
}

std::shared_ptr<std::byte> SharedMemoryTransport::allocate(std::size_t bytes) {
  Window window;
  try {
    window = fabric_->share(std::max<std::size_t>(bytes, 1), deadline_);
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
  const std::uint64_t id = windows_++;
  std::byte* const own = window.segments[static_cast<std::size_t>(rank_)];
  registry_->add(id, std::move(window), rank_);
  return {own, [registry = registry_, id](std::byte*) { registry->remove(id); }};
}

void* SharedMemoryTransport::counterpart(int peer, const void* local) const {
  return registry_->counterpart(peer, local);
}

std::span<std::byte> SharedMemoryTransport::staging(int peer, int half) const {
  return {layout_.staging(segment(peer), half), layout_.staging_half()};
}

template <typename Ready, typename Involves>
void SharedMemoryTransport::wait(Ready ready, Involves involves) {
  if (!crowded_)
    for (int i = 0; i < kSpins; ++i) {
      if (ready()) return;
      pause_cpu();
    }
  // By the clock: on a busy machine a single yield can take milliseconds.
  for (const Deadline yielding = Deadline::after(kYielding); !yielding.passed();) {
    if (ready()) return;
    ::sched_yield();
  }
  ControlBlock& mine = control(rank_);
  for (;;) {
    // Whoever makes us ready after this line sees `sleeping` and rings; whoever did before it is
    // seen by ready().
    const std::uint32_t bell = mine.doorbell.load();
    mine.sleeping.store(1);
    const bool done = ready();
    if (!done) {
      look_for_trouble(involves);
      sleep_on(mine.doorbell, bell,
               std::min<std::chrono::nanoseconds>(kNap, deadline_.remaining()));
    }
    mine.sleeping.store(0);
    mine.heartbeat.fetch_add(1, std::memory_order_relaxed);
    if (done) return;
  }
}

template <typename Involves>
void SharedMemoryTransport::look_for_trouble(Involves involves) {
  throw_if_aborted();
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || !involves(peer)) continue;
    const bool dead = fabric_->is_dead(peer);
    if (!involves(peer)) continue;  // its last act was what we wait for
    if (control(peer).left.load() != 0)
      fail(fmt::format("rank {} ({}) has left the group while rank {} waits for it in {}; {}", peer,
                       fabric_->describe(peer), rank_,
                       comm::describe(control(rank_).latest.fingerprint()), account_of(peer)));
    if (dead)
      fail(fmt::format("rank {} ({}) has died; {}", peer, fabric_->describe(peer),
                       account_of(peer)));
  }
  if (deadline_.passed()) give_up(involves);
}

template <typename Involves>
void SharedMemoryTransport::give_up(Involves involves) {
  // The peer waited for may itself be waiting, and alive: the culprit is the one whose heart does
  // not beat.
  std::vector<std::uint64_t> beats;
  for (int peer = 0; peer < size_; ++peer) beats.push_back(control(peer).heartbeat.load());
  const Deadline watch = Deadline::after(kHeartbeatWatch);
  while (!watch.passed()) {
    throw_if_aborted();
    control(rank_).heartbeat.fetch_add(1, std::memory_order_relaxed);
    std::this_thread::sleep_for(kNap / 5);
  }
  std::string culprits;
  const auto accuse_where = [&](auto&& guilty, const char* of) {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_ && guilty(peer))
        culprits += fmt::format("{}rank {} ({}) {}; {}", culprits.empty() ? "" : "; ", peer,
                                fabric_->describe(peer), of, account_of(peer));
  };
  accuse_where(
      [&](int peer) {
        return control(peer).heartbeat.load() == beats[static_cast<std::size_t>(peer)];
      },
      "is silent");
  if (culprits.empty()) accuse_where(involves, "does something else");
  fail(fmt::format("rank {} waited {} in {}: {}", rank_, seconds_text(deadline_.allowance()),
                   comm::describe(control(rank_).latest.fingerprint()), culprits));
}

std::string SharedMemoryTransport::account_of(int peer) const {
  const ControlBlock& block = control(peer);
  const std::uint64_t begun = block.begun.load(std::memory_order_relaxed);
  if (begun == 0) return "it has begun no operation yet";
  const bool inside = block.finished.load(std::memory_order_relaxed) < begun;
  return fmt::format("it {} operation {}, {}", inside ? "was in" : "had finished", begun,
                     comm::describe(block.latest.fingerprint()));
}

void SharedMemoryTransport::throw_if_aborted() const {
  AbortNotice& notice = abort_notice();
  if (notice.state.load() == AbortNotice::kWritten) throw RankLostError(notice.reason);
}

void SharedMemoryTransport::abort(const std::string& reason) noexcept {
  if (::getpid() != process_) return;
  AbortNotice& notice = abort_notice();
  std::uint32_t expected = AbortNotice::kEmpty;
  if (notice.state.compare_exchange_strong(expected, AbortNotice::kWriting)) {
    const std::size_t n = std::min(reason.size(), AbortNotice::kReasonBytes - 1);
    std::memcpy(notice.reason, reason.data(), n);
    notice.reason[n] = '\0';
    notice.state.store(AbortNotice::kWritten);
  }
  for (int peer = 0; peer < size_; ++peer) ring(peer);
}

void SharedMemoryTransport::fail(const std::string& reason) {
  abort(reason);
  const Deadline patience =
      Deadline::after(kHeartbeatWatch);  // another rank may be writing its reason
  while (!patience.passed()) {
    throw_if_aborted();
    std::this_thread::yield();
  }
  throw RankLostError(reason);
}

}  // namespace collar::comm
