// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/signal_queue.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/core/error.hpp"

namespace collar::apps {

SignalQueue::SignalQueue(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : signals) sigaddset(&wanted, number);
  descriptor_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) {
    throw DeviceError(fmt::format("cannot queue signals: {}", std::strerror(errno)));
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
}

SignalQueue::~SignalQueue() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() const {
  signalfd_siginfo info{};
  const bool any = read(descriptor_, &info, sizeof(info)) == sizeof(info);
  return any ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace collar::apps
