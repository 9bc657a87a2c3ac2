// SPDX-License-Identifier: Apache-2.0
// Deadline: the moment a wait gives up. Made once where a wait begins and handed down, so that the
// parts of an operation share one allowance. On the steady clock: setting the time of day moves
// nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>

namespace collar::comm {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::nanoseconds allowance) {
    return {
        Clock::now() + std::min<std::chrono::nanoseconds>(allowance, std::chrono::hours(24 * 365)),
        allowance};
  }

  bool passed() const { return Clock::now() >= end_; }
  /// Never negative.
  std::chrono::nanoseconds remaining() const {
    return std::max<std::chrono::nanoseconds>(end_ - Clock::now(), std::chrono::nanoseconds(0));
  }
  /// For poll(): rounded up, so that a wait does not end early and spin.
  int poll_milliseconds() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<long long>(left, INT_MAX));
  }
  /// The earlier of the two.
  Deadline capped(std::chrono::nanoseconds allowance) const {
    const Deadline other = after(allowance);
    return other.end_ < end_ ? other : *this;
  }
  std::chrono::nanoseconds allowance() const { return allowance_; }

 private:
  Deadline(Clock::time_point end, std::chrono::nanoseconds allowance)
      : end_(end), allowance_(allowance) {}

  Clock::time_point end_;
  std::chrono::nanoseconds allowance_;
};

/// "60 s", "0.25 s"
std::string seconds_text(std::chrono::nanoseconds duration);

}  // namespace collar::comm
