// SPDX-License-Identifier: Apache-2.0
// Signals that ask a run to stop. The handler only takes a note; the run looks at it between steps,
// so that all ranks stop at the same one.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>

namespace collar::apps {

enum class StopRequest : std::uint8_t {
  none,
  save_and_exit,  ///< SIGTERM, SIGUSR1, SIGHUP: a scheduler wants the machine back
  interrupt       ///< SIGINT
};

/// While one exists, SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless it was ignored before) are notes;
/// what comes two seconds after the first, but SIGUSR1, ends the process as usual. At most one at a
/// time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  StopRequest request() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};

  struct sigaction previous_[kSignals.size()]{};
};

}  // namespace collar::apps
