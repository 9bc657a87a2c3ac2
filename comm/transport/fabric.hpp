// SPDX-License-Identifier: Apache-2.0
// Fabric: what differs between threads of one process and processes of one host: how memory comes
// to be shared, and how the end of a peer is noticed. Everything else, SharedMemoryTransport does
// for both.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/rendezvous/deadline.hpp"

namespace collar::comm {

inline constexpr std::size_t kPage = 4096;  ///< what segments of memory begin at

/// One zeroed piece of memory a rank, all of the same size, all mapped here. Unmapped with the last
/// owner.
struct Window {
  std::vector<std::byte*> segments;  ///< by rank
  std::size_t bytes = 0;
  std::shared_ptr<void> owner;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// All ranks call this in the same order with the same size. Throws DeviceError where there is no
  /// memory (on this rank) and RankLostError where a peer has none, is gone or does not answer.
  virtual Window share(std::size_t bytes, Deadline deadline) = 0;
  /// Whether the process behind a rank has ended.
  virtual bool is_dead(int peer) = 0;
  /// "pid 4711"
  virtual std::string describe(int peer) const = 0;
  /// Whether the ranks are more than the CPUs they may use: then waiting must not spin.
  virtual bool is_crowded() const = 0;
};

}  // namespace collar::comm
