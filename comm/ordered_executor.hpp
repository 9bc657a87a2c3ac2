// SPDX-License-Identifier: Apache-2.0
// OrderedExecutor: carries out tasks strictly one after the other: asynchronous ones in a thread of
// its own, a synchronous one in the caller's thread if there is nothing before it, which saves two
// hand-overs. After a task has thrown, nothing is carried out any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/work.hpp"

namespace collar::comm {

class OrderedExecutor {
 public:
  using Task = std::function<void()>;

  OrderedExecutor();
  /// Does not begin what is still queued, waits for the task under way.
  ~OrderedExecutor();
  OrderedExecutor(const OrderedExecutor&) = delete;
  OrderedExecutor& operator=(const OrderedExecutor&) = delete;

  /// Both throw what an earlier task threw.
  Work start(Task task);
  /// Returns when the task is done; throws what it threw.
  void run(const Task& task);

  /// Tasks that are queued or under way.
  std::size_t unfinished() const;

 private:
  struct Queued {
    Task task;
    std::shared_ptr<Work::State> state;
  };

  void serve_queue();
  static std::exception_ptr attempt(const Task& task) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool busy_ = false;  // some thread is carrying out a task
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace collar::comm
