// SPDX-License-Identifier: Apache-2.0
#include "apps/train/stop_signal.hpp"

#include <time.h>

#include <atomic>
#include <chrono>

#include "apps/launch/launcher.hpp"

namespace collar::apps {
namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t noted = 0;
std::atomic<std::int64_t> noted_at{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void take_note(int signal) {
  if (noted == 0) {
    noted_at = now();
    noted = signal;
  } else if (signal != SIGUSR1 && std::chrono::nanoseconds(now() - noted_at) > kSameRequest) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = take_note;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, &previous_[i]);
    const bool hangup_is_ignored = kSignals[i] == SIGHUP && previous_[i].sa_handler == SIG_IGN;
    if (hangup_is_ignored) sigaction(SIGHUP, &previous_[i], nullptr);  // nohup
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
