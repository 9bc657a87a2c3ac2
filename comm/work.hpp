// SPDX-License-Identifier: Apache-2.0
// Work: the handle of an operation that runs while its caller goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

namespace collar::comm {

/// An operation under way. A handle; copies share it. Dropping it does not cancel anything.
class Work {
 public:
  /// An operation that is done.
  Work() = default;

  bool is_done() const;
  /// Returns when the operation is done; throws what it threw. Ends at the latest with the
  /// operation's own timeout.
  void wait() const;
  /// Waits no longer than this; false if it is not done yet.
  bool wait_for(std::chrono::nanoseconds duration) const;

  /// For backends: the state behind the handle.
  class State {
   public:
    void finish(std::exception_ptr error);

   private:
    friend class Work;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::exception_ptr error_;
  };
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace collar::comm
