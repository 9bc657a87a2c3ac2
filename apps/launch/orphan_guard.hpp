// SPDX-License-Identifier: Apache-2.0
// A tiny process that outlives its parent by a moment: when the parent is gone, however it died, it
// kills the process groups it was told about. PR_SET_PDEATHSIG alone would miss what ranks started.
#pragma once

#include <sys/types.h>

#include "engine/io/file_descriptor.hpp"

namespace collar::apps {

class OrphanGuard {
 public:
  static constexpr int kMostGroups = 1024;

  /// Forks. The child only calls functions that are safe after a fork. Throws DeviceError.
  OrphanGuard();
  /// Ends the guard; groups that were not removed are killed.
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  void add(pid_t group) const { send(group); }
  void remove(pid_t group) const { send(-group); }

 private:
  void send(pid_t message) const;

  pid_t guard_ = -1;
  FileDescriptor pipe_;
};

}  // namespace collar::apps
