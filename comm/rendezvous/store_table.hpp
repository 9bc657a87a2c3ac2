// SPDX-License-Identifier: Apache-2.0
// StoreTable: the keys and values of a StoreServer, within limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "comm/rendezvous/store_protocol.hpp"

namespace collar::comm {

struct StoreLimits {
  std::size_t key_bytes = 256;
  std::size_t value_bytes = 1 << 20;
  std::size_t keys = 100'000;
  std::size_t total_bytes = std::size_t{256} << 20;
  std::size_t clients = 4096;  ///< connections that have proved the token
  std::size_t strangers =
      64;  ///< connections that have not yet: the oldest is dropped for a new one
  std::chrono::milliseconds handshake{5000};
};

class StoreTable {
 public:
  struct Reply {
    store_protocol::Status status = store_protocol::Status::ok;
    std::string value;
  };

  explicit StoreTable(const StoreLimits& limits) : limits_(limits) {}

  /// Null if nobody has set it.
  const std::string* find(const std::string& key) const;
  Reply set(const std::string& key, const std::string& value);
  /// Adds a decimal number to the key's, 0 at first; the sum.
  Reply add(const std::string& key, const std::string& delta);

 private:
  StoreLimits limits_;
  std::unordered_map<std::string, std::string> values_;
  std::size_t bytes_ = 0;
};

}  // namespace collar::comm
