// SPDX-License-Identifier: Apache-2.0
#include "comm/ordered_executor.hpp"

#include <utility>

#include "kernels/core/error.hpp"

namespace collar::comm {

OrderedExecutor::OrderedExecutor() : thread_([this] { serve_queue(); }) {}

OrderedExecutor::~OrderedExecutor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Work OrderedExecutor::start(Task task) {
  const auto state = std::make_shared<Work::State>();
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    queue_.push_back({std::move(task), state});
  }
  changed_.notify_all();
  return Work(state);
}

void OrderedExecutor::run(const Task& task) {
  std::shared_ptr<Work::State> queued;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (busy_ || !queue_.empty()) {
      queued = std::make_shared<Work::State>();
      queue_.push_back({task, queued});
    } else {
      busy_ = true;
    }
  }
  if (queued) {
    changed_.notify_all();
    return Work(queued).wait();
  }
  const std::exception_ptr error = attempt(task);
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (error) failure_ = error;
  }
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

std::size_t OrderedExecutor::unfinished() const {
  const std::lock_guard lock(mutex_);
  return queue_.size() + (busy_ ? 1 : 0);
}

void OrderedExecutor::serve_queue() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!queue_.empty() && !busy_); });
    if (stopping_) break;
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    if (!failure_) {
      busy_ = true;
      lock.unlock();
      const std::exception_ptr error = attempt(next.task);
      lock.lock();
      busy_ = false;
      if (error) failure_ = error;
    }
    next.state->finish(failure_);
  }
  for (const Queued& left : queue_)
    left.state->finish(std::make_exception_ptr(RankLostError("the communicator was closed")));
}

std::exception_ptr OrderedExecutor::attempt(const Task& task) noexcept {
  try {
    task();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace collar::comm
