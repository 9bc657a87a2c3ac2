// SPDX-License-Identifier: Apache-2.0
// KernelTimes: where the time of a run goes, by the kind of operation that called the kernels. A
// context counts only while somebody measures.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace collar {

class KernelTimes {
 public:
  /// Counts from its construction to the end of its life, unless `times` is null. The kind of
  /// operation is the stem of `file`: "norm" for engine/ops/norm.cpp.
  class Call {
   public:
    Call(KernelTimes* times, const char* file);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    double* seconds_ = nullptr;
    std::chrono::steady_clock::time_point begin_;
  };

  const std::map<std::string, double, std::less<>>& seconds() const { return seconds_; }

 private:
  std::map<std::string, double, std::less<>> seconds_;
};

inline KernelTimes::Call::Call(KernelTimes* times, const char* file) {
  if (times == nullptr) return;
  std::string_view kind(file);
  kind.remove_prefix(kind.rfind('/') + 1);
  kind = kind.substr(0, kind.rfind('.'));
  auto entry = times->seconds_.find(kind);
  if (entry == times->seconds_.end()) entry = times->seconds_.emplace(kind, 0.0).first;
  seconds_ = &entry->second;
  begin_ = std::chrono::steady_clock::now();
}

inline KernelTimes::Call::~Call() {
  if (seconds_ == nullptr) return;
  *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace collar
