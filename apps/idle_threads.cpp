// SPDX-License-Identifier: Apache-2.0
#include "apps/idle_threads.hpp"

#include <unistd.h>

#include <cstdlib>

namespace collar::apps {

void let_idle_threads_sleep(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);  // some microseconds
  execv("/proc/self/exe", argv);
}

}  // namespace collar::apps
