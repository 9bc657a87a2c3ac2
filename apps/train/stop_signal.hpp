// SPDX-License-Identifier: Apache-2.0
// Signals that ask a run to stop. The handler only takes a note; the run looks at it between steps,
// so that all ranks stop at the same one.
#pragma once

#include <csignal>
#include <cstdint>

namespace collar::apps {

enum class StopRequest : std::uint8_t {
  none,
  save_and_exit,  ///< SIGTERM, SIGUSR1: a scheduler wants the machine back
  interrupt       ///< SIGINT
};

/// While one exists, SIGINT, SIGTERM and SIGUSR1 are notes; a second SIGINT or SIGTERM ends the
/// process as usual. At most one at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  StopRequest request() const;

 private:
  struct sigaction previous_[3]{};
};

}  // namespace collar::apps
