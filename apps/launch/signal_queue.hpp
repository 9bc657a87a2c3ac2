// SPDX-License-Identifier: Apache-2.0
// Signals as a descriptor that poll waits for, instead of handlers that interrupt anything.
#pragma once

#include <signal.h>

#include <initializer_list>

#include "engine/io/file_descriptor.hpp"

namespace collar::apps {

class SignalQueue {
 public:
  /// Blocks these signals in the calling thread, and queues them, until the end of the scope.
  /// Throws DeviceError.
  explicit SignalQueue(std::initializer_list<int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Readable when a signal waits.
  int descriptor() const { return descriptor_.get(); }
  /// The next signal, or 0 if none waits.
  int next() const;

 private:
  sigset_t before_{};
  FileDescriptor descriptor_;
};

}  // namespace collar::apps
