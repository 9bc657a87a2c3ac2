// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/rendezvous/byte_queue.hpp"
#include "comm/rendezvous/handshake.hpp"
#include "comm/rendezvous/store_protocol.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

using store_protocol::Command;
using store_protocol::Status;

/// A get() whose key is not there yet.
struct Waiting {
  std::string key;
  Deadline deadline;
};

struct Connection {
  enum class Stage { greeting, proof, serving };

  explicit Connection(FileDescriptor descriptor, Deadline until)
      : socket(std::move(descriptor)), handshake(until) {}

  FileDescriptor socket;
  Deadline handshake;  // the end of the patience with a stranger
  Stage stage = Stage::greeting;
  Greeting greeting;
  Challenge challenge;
  ByteQueue in;
  ByteQueue out;
  std::optional<Waiting> waiting;
  bool finished = false;  // to be closed once `out` is sent
  bool said_goodbye = false;
  bool lost = false;  // to be closed now
};

template <typename T>
T take(ByteQueue& bytes) {
  T message;
  std::memcpy(&message, bytes.data(), sizeof message);
  bytes.take(sizeof message);
  return message;
}

template <typename T>
void append(ByteQueue& bytes, const T& message) {
  bytes.append(std::as_bytes(std::span(&message, 1)));
}

}  // namespace

class StoreServer::Loop {
 public:
  Loop(const FileDescriptor& listener, std::string token, const StoreLimits& limits)
      : listener_(listener),
        token_(std::move(token)),
        limits_(limits),
        table_(limits),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw DeviceError("eventfd failed: " + system_error_text(errno));
  }

  void stop() noexcept {
    stopping_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  /// Serves until stop(). What it cannot go on after (no memory) ends it like the death of its
  /// process: every client's connection is closed, and nobody is let in any more.
  void run() noexcept {
    try {
      while (!stopping_) serve_next();
    } catch (const std::exception&) {
      connections_.clear();
      ::shutdown(listener_.get(), SHUT_RDWR);
    }
  }

  Statistics statistics() const { return {accepted_, refused_, dropped_}; }

 private:
  /// Waits for something to happen, and deals with it.
  void serve_next() {
    std::vector<pollfd> entries = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    if (full_until_ && !full_until_->passed()) entries[1].events = 0;
    std::vector<Connection*> order;
    for (Connection& connection : connections_) {
      const short events = connection.out.empty() ? POLLIN : POLLOUT;
      entries.push_back({connection.socket.get(), events, 0});
      order.push_back(&connection);
    }
    if (::poll(entries.data(), entries.size(), next_timeout()) < 0) {
      if (errno == EINTR) return;
      throw DeviceError("the store: poll failed: " + system_error_text(errno));
    }
    for (std::size_t i = 0; i < order.size(); ++i)
      if (entries[i + 2].revents != 0) handle(*order[i], entries[i + 2].revents);
    expire();
    serve_all();
    if (entries[1].revents != 0) accept_all();
    connections_.remove_if([](const Connection& c) { return c.lost; });
  }

  int next_timeout() const {
    int timeout = 60'000;
    for (const Connection& connection : connections_) {
      if (connection.stage != Connection::Stage::serving)
        timeout = std::min(timeout, connection.handshake.poll_milliseconds());
      if (connection.waiting)
        timeout = std::min(timeout, connection.waiting->deadline.poll_milliseconds());
    }
    if (full_until_ && !full_until_->passed())
      timeout = std::min(timeout, full_until_->poll_milliseconds());
    return timeout;
  }

  std::size_t largest_request() const {
    return store_protocol::kRequestHeaderBytes + limits_.key_bytes + limits_.value_bytes;
  }

  std::size_t count(bool serving) const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(), [&](const Connection& c) {
          return !c.lost && (c.stage == Connection::Stage::serving) == serving;
        }));
  }

  void accept_all() {
    for (;;) {
      FileDescriptor socket = accept_from(listener_);
      if (!socket) {
        // Out of descriptors: the next ones must wait in the backlog, and the loop must not spin.
        if (errno != EAGAIN && errno != EWOULDBLOCK)
          full_until_ = Deadline::after(std::chrono::milliseconds(100));
        return;
      }
      if (count(false) >= limits_.strangers)
        drop(*std::find_if(connections_.begin(), connections_.end(), [](const Connection& c) {
          return !c.lost && c.stage != Connection::Stage::serving;
        }));
      connections_.emplace_back(std::move(socket), Deadline::after(limits_.handshake));
    }
  }

  /// False, for what had to be served and cannot be.
  bool drop(Connection& connection) {
    if (connection.lost) return false;
    connection.lost = true;
    if (connection.stage != Connection::Stage::serving) {
      if (!connection.finished) ++dropped_;
    } else if (!connection.said_goodbye && connection.greeting.world_size > 0) {
      report_rank_gone(connection.greeting);
    }
    return false;
  }

  /// A rank is gone before all have met: nobody need wait for it any longer.
  void report_rank_gone(const Greeting& rank) {
    gone_ = fmt::format("rank {} (of {}) has died or was cut off before all ranks had met",
                        rank.rank, rank.world_size);
    for (Connection& connection : connections_)
      if (connection.waiting) {
        connection.waiting.reset();
        reply(connection, Status::rank_gone, gone_);
      }
  }

  void expire() {
    for (Connection& connection : connections_) {
      if (connection.stage != Connection::Stage::serving && connection.handshake.passed())
        drop(connection);
      if (connection.waiting && connection.waiting->deadline.passed()) {
        connection.waiting.reset();
        reply(connection, Status::not_there_in_time, "");
      }
    }
  }

  void handle(Connection& connection, short events) {
    if (!connection.out.empty()) flush(connection);
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || !connection.out.empty()) return;
    std::byte chunk[16384];
    const ssize_t n = ::recv(connection.socket.get(), chunk, sizeof chunk, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (n <= 0) {
      drop(connection);
      return;
    }
    connection.in.append({chunk, static_cast<std::size_t>(n)});
    if (connection.in.size() > largest_request() + sizeof chunk) drop(connection);
  }

  void flush(Connection& connection) {
    while (!connection.out.empty()) {
      const ssize_t n = ::send(connection.socket.get(), connection.out.data(),
                               connection.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n < 0) {
        drop(connection);
        return;
      }
      connection.out.take(static_cast<std::size_t>(n));
    }
    if (connection.finished) connection.lost = true;
  }

  /// Serves what has come in until nothing more can be: one client's request may end another's
  /// wait.
  void serve_all() {
    bool served = true;
    while (served) {
      served = false;
      for (Connection& connection : connections_)
        while (advance(connection)) served = true;
    }
  }

  /// Takes one step that the bytes received so far allow; false if there is none. A client that
  /// does not read its answers gets no more of them.
  bool advance(Connection& connection) {
    if (connection.lost || connection.finished || connection.waiting || !connection.out.empty() ||
        connection.in.empty())
      return false;
    switch (connection.stage) {
      case Connection::Stage::greeting:
        return receive_greeting(connection);
      case Connection::Stage::proof:
        return receive_proof(connection);
      case Connection::Stage::serving:
        return serve_one(connection);
    }
    return false;
  }

  bool receive_greeting(Connection& connection) {
    if (!looks_like_greeting(connection.in)) return drop(connection);
    if (connection.in.size() < sizeof(Greeting)) return false;
    connection.greeting = take<Greeting>(connection.in);
    if (!is_greeting(connection.greeting)) return drop(connection);
    connection.challenge.nonce = random_nonce();
    append(connection.out, connection.challenge);
    connection.stage = Connection::Stage::proof;
    flush(connection);
    return true;
  }

  bool receive_proof(Connection& connection) {
    if (connection.in.size() < sizeof(Digest)) return false;
    const Verdict verdict = judge(token_, connection.greeting, connection.challenge,
                                  take<Digest>(connection.in), Purpose::store);
    const bool accepted = verdict.accepted != 0;
    if (accepted && count(true) >= limits_.clients) return drop(connection);
    append(connection.out, verdict);
    (accepted ? accepted_ : refused_)++;
    if (accepted) connection.stage = Connection::Stage::serving;
    connection.finished = !accepted;
    flush(connection);
    return true;
  }

  /// Garbage is known by its first bytes: it need not be waited for.
  static bool looks_like_greeting(const ByteQueue& bytes) {
    const auto magic = Greeting().magic;
    return std::memcmp(bytes.data(), magic.data(), std::min(bytes.size(), magic.size())) == 0;
  }

  /// Serves a complete request; false if there is none.
  bool serve_one(Connection& connection) {
    using namespace store_protocol;
    ByteQueue& in = connection.in;
    if (in.size() < kLengthBytes) return false;
    const std::size_t length = read_u32(in.data());
    if (length < kRequestHeaderBytes || length > largest_request()) return drop(connection);
    if (in.size() < kLengthBytes + length) return false;
    const std::byte* request = in.data() + kLengthBytes;
    const auto command = static_cast<Command>(request[0]);
    const std::chrono::milliseconds patience(read_u32(request + 1));
    const std::size_t key_length = read_u32(request + 5);
    if (key_length > limits_.key_bytes || key_length > length - kRequestHeaderBytes)
      return drop(connection);
    const auto* text = reinterpret_cast<const char*>(request + kRequestHeaderBytes);
    const std::string key(text, key_length);
    const std::string value(text + key_length, length - kRequestHeaderBytes - key_length);
    in.take(kLengthBytes + length);
    switch (command) {
      case Command::set:
        changed(connection, key, table_.set(key, value));
        break;
      case Command::add:
        changed(connection, key, table_.add(key, value));
        break;
      case Command::get:
        get(connection, key, patience);
        break;
      case Command::goodbye:
        connection.said_goodbye = true;
        break;
      default:
        reply(connection, Status::refused, "unknown command");
        break;
    }
    return true;
  }

  void get(Connection& connection, const std::string& key, std::chrono::milliseconds patience) {
    if (const std::string* const value = table_.find(key); value != nullptr)
      reply(connection, Status::ok, *value);
    else if (!gone_.empty())
      reply(connection, Status::rank_gone, gone_);
    else if (patience.count() == 0)
      reply(connection, Status::not_there_in_time, "");
    else
      connection.waiting = Waiting{key, Deadline::after(patience)};
  }

  /// Answers a set or add, and those who have waited for the key.
  void changed(Connection& connection, const std::string& key, const StoreTable::Reply& result) {
    reply(connection, result.status, result.value);
    if (result.status != Status::ok) return;
    for (Connection& other : connections_)
      if (other.waiting && other.waiting->key == key) {
        other.waiting.reset();
        reply(other, Status::ok, *table_.find(key));
      }
  }

  void reply(Connection& connection, Status status, std::string_view value) {
    std::byte length[store_protocol::kLengthBytes];
    store_protocol::write_u32(length, value.size() + 1);
    append(connection.out, length);
    append(connection.out, status);
    connection.out.append(std::as_bytes(std::span(value)));
    flush(connection);
  }

  const FileDescriptor& listener_;
  std::string token_;
  StoreLimits limits_;
  StoreTable table_;
  FileDescriptor wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> accepted_{0}, refused_{0}, dropped_{0};
  std::list<Connection> connections_;
  std::string gone_;  // why waiting for a key is in vain
  std::optional<Deadline> full_until_;
};

StoreServer::StoreServer(const Endpoint& endpoint, std::string token, const StoreLimits& limits) {
  if (token.empty() && !is_loopback(endpoint))
    throw UsageError(fmt::format(
        "the store is to listen on {}, which others can reach, without a job token: set "
        "COLLAR_JOB_TOKEN to the same secret on all ranks, or use a loopback address",
        to_string(endpoint)));
  listener_ = listen_on(endpoint);
  loop_ = std::make_unique<Loop>(listener_.socket, std::move(token), limits);
  thread_ = std::thread([this] { loop_->run(); });
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
}

StoreServer::Statistics StoreServer::statistics() const {
  return loop_->statistics();
}

}  // namespace collar::comm
