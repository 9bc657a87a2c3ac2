// SPDX-License-Identifier: Apache-2.0
// StoreServer: a small key-value store on a TCP port (or an abstract unix socket) through which the
// ranks of a job find each other. It runs in a thread of rank 0 until all have met. Strangers,
// garbage and dawdlers are dropped and counted and cannot harm it: everything is bounded, and
// nothing waits for one client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "comm/rendezvous/socket.hpp"
#include "comm/rendezvous/store_table.hpp"

namespace collar::comm {

class StoreServer {
 public:
  /// Listens and starts to serve. Throws UsageError if the address is taken, or if it is not a
  /// loopback address and there is no token.
  StoreServer(const Endpoint& endpoint, std::string token, const StoreLimits& limits = {});
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// With the port the kernel chose, if 0 was asked for.
  const Endpoint& endpoint() const { return listener_.endpoint; }

  struct Statistics {
    std::uint64_t accepted = 0;  ///< clients that proved the token
    std::uint64_t refused = 0;   ///< wrong token or version
    std::uint64_t dropped = 0;   ///< strangers, garbage, too slow
  };
  Statistics statistics() const;

 private:
  class Loop;

  Listener listener_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace collar::comm
