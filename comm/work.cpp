// SPDX-License-Identifier: Apache-2.0
#include "comm/work.hpp"

#include <utility>

namespace collar::comm {

void Work::State::finish(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
}

bool Work::is_done() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex_);
  return state_->done_;
}

void Work::wait() const {
  if (!state_) return;
  std::unique_lock lock(state_->mutex_);
  state_->changed_.wait(lock, [&] { return state_->done_; });
  if (state_->error_) std::rethrow_exception(state_->error_);
}

bool Work::wait_for(std::chrono::nanoseconds duration) const {
  if (!state_) return true;
  std::unique_lock lock(state_->mutex_);
  if (!state_->changed_.wait_for(lock, duration, [&] { return state_->done_; })) return false;
  if (state_->error_) std::rethrow_exception(state_->error_);
  return true;
}

}  // namespace collar::comm
