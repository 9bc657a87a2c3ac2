// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/signal_queue.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "kernels/core/error.hpp"

namespace collar::apps {

SignalQueue::SignalQueue(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : signals) sigaddset(&wanted, number);
  descriptor_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) throw DeviceError("cannot queue signals: " + system_error_text(errno));
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
}

SignalQueue::~SignalQueue() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() const {
  signalfd_siginfo info{};
  const bool any = read(descriptor_.get(), &info, sizeof(info)) == sizeof(info);
  return any ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace collar::apps
