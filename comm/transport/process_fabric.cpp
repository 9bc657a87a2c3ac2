// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/process_fabric.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "comm/rendezvous/handshake.hpp"
#include "comm/transport/shared_file.hpp"
#include "kernels/core/error.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::comm {
namespace {

constexpr std::chrono::seconds kGreeting(5);

struct Peer {
  FileDescriptor socket;   ///< empty for this rank itself
  FileDescriptor process;  ///< a pidfd; empty where the kernel gives none
  pid_t pid = 0;
};

class ProcessFabric final : public Fabric {
 public:
  ProcessFabric(int rank, std::vector<Peer> peers) : rank_(rank), peers_(std::move(peers)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string describe(int peer) const override { return fmt::format("pid {}", at(peer).pid); }
  bool is_crowded() const override { return size() > available_cpus(); }

  bool is_dead(int peer) override {
    pollfd entries[] = {{at(peer).socket.get(), POLLRDHUP, 0}, {at(peer).process.get(), POLLIN, 0}};
    return ::poll(entries, 2, 0) > 0;  // poll ignores a descriptor of -1
  }

  Window share(std::size_t bytes, Deadline deadline) override {
    FileDescriptor own;
    std::optional<DeviceError> failure;
    try {
      own = make_shared_file(bytes);
    } catch (const DeviceError& error) {
      failure = error;  // the others wait to hear it
    }
    const ShareNotice mine{sequence_++, bytes, failure ? 1u : 0u};
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank_) send_descriptor(at(peer).socket.get(), mine, own, deadline, what(peer));
    if (failure) throw *failure;
    const auto mappings = std::make_shared<std::vector<std::shared_ptr<std::byte>>>();
    Window window;
    for (int peer = 0; peer < size(); ++peer) {
      mappings->push_back(peer == rank_ ? map_shared_file(own, bytes)
                                        : receive_segment(peer, mine, deadline));
      window.segments.push_back(mappings->back().get());
    }
    window.bytes = bytes;
    window.owner = mappings;
    return window;
  }

 private:
  const Peer& at(int peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  std::string what(int peer) const { return fmt::format("rank {} ({})", peer, describe(peer)); }

  std::shared_ptr<std::byte> receive_segment(int peer, const ShareNotice& mine, Deadline deadline) {
    ShareNotice theirs;
    const FileDescriptor file =
        receive_descriptor(at(peer).socket.get(), theirs, deadline, what(peer));
    if (theirs.failed != 0)
      throw RankLostError(
          fmt::format("{} could not get {} bytes of shared memory", what(peer), theirs.bytes));
    if (theirs.sequence != mine.sequence || theirs.bytes != mine.bytes)
      throw RankLostError(
          fmt::format("{} shares {} bytes (number {}), rank {} shares {} (number {})", what(peer),
                      theirs.bytes, theirs.sequence, rank_, mine.bytes, mine.sequence));
    return map_shared_file(file, mine.bytes);
  }

  int rank_;
  std::vector<Peer> peers_;
  std::uint64_t sequence_ = 0;
};

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The process at the other end, as the kernel knows it. Empty if it belongs to another user.
std::optional<Peer> identify(FileDescriptor socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
      who.uid != ::geteuid())
    return std::nullopt;
  Peer peer;
  peer.socket = std::move(socket);
  peer.pid = who.pid;
  if (who.pid > 0) peer.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, who.pid, 0)));
  return peer;
}

/// How much longer than rank 0 the others wait to hear who is missing.
constexpr std::chrono::seconds kForRankZero{1};

/// The store's side of joining: everybody is counted, and everybody waits for the same answer.
class Gathering {
 public:
  Gathering(Store& store, const HostGroupOptions& options, Deadline deadline)
      : store_(store), options_(options), deadline_(deadline) {}

  void join(const std::string& socket_name) {
    check_world_size();
    if (store_.add(key("claims", options_.rank), 1) != 1)
      throw UsageError(
          fmt::format("rank {} has joined already: two processes have RANK={} in the job at {}",
                      options_.rank, options_.rank, to_string(store_.endpoint())));
    store_.set(key("host", options_.rank), host_identity());
    store_.set(key("socket", options_.rank), socket_name);
    if (store_.add("present", 1) == options_.size) answer("");
    // The store is rank 0's and ends with it: at the deadline rank 0 speaks, the others listen on.
    const Deadline patience =
        options_.rank == 0 ? deadline_ : Deadline::after(deadline_.remaining() + kForRankZero);
    const auto verdict = store_.get("answer", patience);
    if (!verdict) report_missing();
    if (!verdict->empty()) throw RankLostError(*verdict);
  }

  /// Throws if a rank has died since. Takes a moment.
  void check_all_alive() {
    (void)store_.get("never", Deadline::after(std::chrono::milliseconds(20)));
  }

  std::string socket_of(int peer) { return value(key("socket", peer)); }

  void check_host(int peer) {
    if (value(key("host", peer)) != host_identity())
      throw UsageError(
          fmt::format("rank {} runs on another host (or in another network namespace) than rank "
                      "{}: this version "
                      "connects ranks of one host only",
                      peer, options_.rank));
  }

 private:
  std::string key(const char* name, int rank) const { return fmt::format("{}/{}", name, rank); }
  std::string value(const std::string& name) {
    const auto found = store_.get(name, deadline_);
    if (!found) throw RankLostError(fmt::format("the store has no {}", name));
    return *found;
  }
  void answer(const std::string& verdict) { store_.set("answer", verdict); }

  void check_world_size() {
    const std::string name = "world_size";
    if (options_.rank == 0) store_.set(name, std::to_string(options_.size));
    const auto theirs = store_.get(name, deadline_);
    if (!theirs) report_missing();
    if (*theirs == std::to_string(options_.size)) return;
    const std::string reason = fmt::format("rank {} expects a world of {} ranks, rank 0 one of {}",
                                           options_.rank, options_.size, *theirs);
    answer(reason);
    throw UsageError(reason);
  }

  [[noreturn]] void report_missing() {
    std::string missing;
    for (int rank = 0; rank < options_.size; ++rank)
      if (rank != options_.rank && !store_.get(key("socket", rank), Deadline::after({})))
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    const std::string reason = fmt::format(
        "ranks that did not join within {}: {} (of {}, at the store {})",
        seconds_text(deadline_.allowance()), missing, options_.size, to_string(store_.endpoint()));
    answer(reason);
    throw RankLostError(reason);
  }

  Store& store_;
  const HostGroupOptions& options_;
  Deadline deadline_;
};

Peer connect_to_peer(int peer, const std::string& socket_name, const HostGroupOptions& options,
                     Deadline deadline) {
  const std::string what = fmt::format("rank {}", peer);
  FileDescriptor socket;
  try {
    socket = connect_to({socket_name, 0}, deadline.capped(std::chrono::seconds(1)));
  } catch (const RankLostError& error) {  // it listened before it told where
    throw RankLostError(fmt::format("{} has died since it joined: {}", what, error.what()));
  }
  auto found = identify(std::move(socket));
  if (!found) throw UsageError(what + " belongs to another user");
  Greeting greeting;
  greeting.purpose = Purpose::peer;
  greeting.rank = options.rank;
  greeting.world_size = options.size;
  greeting.nonce = random_nonce();
  greet(found->socket.get(), greeting, options.token, deadline, what);
  return std::move(*found);
}

/// Waits a while for one of the higher ranks; strangers are turned away. Throws once the deadline
/// has passed, whoever else keeps coming.
void accept_peer(const Listener& listener, const HostGroupOptions& options, Gathering& gathering,
                 Deadline deadline, std::vector<Peer>& peers) {
  if (deadline.passed()) {
    std::string missing;
    for (int rank = options.rank + 1; rank < options.size; ++rank)
      if (!peers[static_cast<std::size_t>(rank)].socket) missing += fmt::format(" {}", rank);
    throw RankLostError(fmt::format("ranks that did not connect to rank {} within {}:{}",
                                    options.rank, seconds_text(deadline.allowance()), missing));
  }
  pollfd entry{listener.socket.get(), POLLIN, 0};
  FileDescriptor socket;
  if (::poll(&entry, 1, deadline.capped(std::chrono::milliseconds(50)).poll_milliseconds()) > 0)
    socket = accept_from(listener.socket);
  if (!socket) return gathering.check_all_alive();  // nobody is there, or no descriptor for them
  auto found = identify(std::move(socket));
  if (!found) return;
  try {
    const Greeting greeting = receive_greeting(found->socket.get(), options.token, Purpose::peer,
                                               deadline.capped(kGreeting), "a connecting rank");
    const bool expected = greeting.rank > options.rank && greeting.rank < options.size &&
                          !peers[static_cast<std::size_t>(greeting.rank)].socket;
    if (expected) peers[static_cast<std::size_t>(greeting.rank)] = std::move(*found);
  } catch (const RankLostError&) {
    // Whoever it was, the deadline decides about the rank we wait for.
  }
}

}  // namespace

std::string host_identity() {
  char space[64] = {};
  if (::readlink("/proc/self/ns/net", space, sizeof space - 1) < 0) space[0] = '\0';
  return first_line("/proc/sys/kernel/random/boot_id") + " " + space;
}

std::unique_ptr<Fabric> join_host_group(Store& store, const HostGroupOptions& options,
                                        Deadline deadline) {
  const Listener listener =
      listen_on({"@collar-" + to_hex(random_nonce()).substr(0, 32), 0}, options.size);
  Gathering gathering(store, options, deadline);
  gathering.join(listener.endpoint.host);
  std::vector<Peer> peers(static_cast<std::size_t>(options.size));
  peers[static_cast<std::size_t>(options.rank)].pid = ::getpid();
  for (int peer = 0; peer < options.size; ++peer) gathering.check_host(peer);
  for (int peer = 0; peer < options.rank; ++peer)
    peers[static_cast<std::size_t>(peer)] =
        connect_to_peer(peer, gathering.socket_of(peer), options, deadline);
  for (int peer = options.rank + 1; peer < options.size; ++peer)
    while (!peers[static_cast<std::size_t>(peer)].socket)
      accept_peer(listener, options, gathering, deadline, peers);
  return std::make_unique<ProcessFabric>(options.rank, std::move(peers));
}

}  // namespace collar::comm
