// SPDX-License-Identifier: Apache-2.0
// oneDNN takes as many threads as OpenMP would give the caller, both when it plans and when it
// computes. The number belongs to the calling thread, so ranks that are threads of one process do
// not disturb each other.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace collar::kernels::onednn {

/// OpenMP regions started by this thread have `threads` threads while the object lives. Without
/// OpenMP in our own build there is no say, and oneDNN follows OMP_NUM_THREADS.
class ThreadScope {
 public:
#ifdef _OPENMP
  explicit ThreadScope(int threads) : previous_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadScope() {
    omp_set_num_threads(previous_);
  }
#else
  explicit ThreadScope(int) {}
#endif
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  [[maybe_unused]] int previous_ = 0;
};

}  // namespace collar::kernels::onednn
