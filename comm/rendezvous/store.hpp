// SPDX-License-Identifier: Apache-2.0
// Store: a client of StoreServer. set, get and add of short strings, each with a deadline.
// Thread-safe, one request at a time. A request that fails on the way gives the connection up:
// every later one throws RankLostError.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/rendezvous/deadline.hpp"
#include "comm/rendezvous/socket.hpp"
#include "comm/rendezvous/store_protocol.hpp"

namespace collar::comm {

class Store {
 public:
  /// Connects and proves the token. The server may not be up yet: tries again until the deadline.
  /// Throws UsageError where the server refuses (wrong token, other version), RankLostError where
  /// there is none in time.
  Store(const Endpoint& endpoint, const std::string& token, Deadline deadline, int rank = 0,
        int world_size = 0);
  /// Says goodbye, so that the server does not take this rank for dead.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(std::string_view key, std::string_view value);
  /// The value, once somebody has set it; empty if nobody does before the deadline. Throws
  /// RankLostError if a rank of the job has lost its connection: waiting for it would be in vain.
  std::optional<std::string> get(std::string_view key, Deadline deadline);
  /// Adds to a number that begins at 0; the sum.
  std::int64_t add(std::string_view key, std::int64_t delta);

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Reply {
    store_protocol::Status status;
    std::string value;
  };
  void send_request(store_protocol::Command command, std::string_view key, std::string_view value,
                    std::chrono::milliseconds patience, Deadline deadline);
  Reply request(store_protocol::Command command, std::string_view key, std::string_view value,
                std::chrono::milliseconds patience);
  Reply receive_reply(Deadline deadline);

  Endpoint endpoint_;
  std::string what_;
  std::mutex mutex_;
  FileDescriptor socket_;  // empty once a request has failed
};

}  // namespace collar::comm
