// SPDX-License-Identifier: Apache-2.0
#include "apps/train/stop_signal.hpp"

#include <array>

namespace collar::apps {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGUSR1};

// A signal handler can reach nothing else.
volatile std::sig_atomic_t noted = 0;

void take_note(int signal) {
  noted = signal;
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = take_note;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    // The second one finds the default action: it ends the process.
    if (kSignals[i] != SIGUSR1) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    sigaction(kSignals[i], &action, &previous_[i]);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

StopRequest StopSignal::request() const {
  if (noted == 0) return StopRequest::none;
  return noted == SIGINT ? StopRequest::interrupt : StopRequest::save_and_exit;
}

}  // namespace collar::apps
