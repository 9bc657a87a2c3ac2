// SPDX-License-Identifier: Apache-2.0
// How long a thread of OpenMP that waits for the others keeps its CPU.
#pragma once

namespace collar::apps {

/// libgomp lets threads spin for milliseconds at the end of each parallel loop. Where CPUs are
/// shared (with loader threads, other programs, other containers) that takes them from the very
/// threads that are waited for: on two CPUs at a load of five, training was four times slower with
/// it, and on idle ones no faster. libgomp reads its settings when it is loaded, so
/// the program is started again with a short spin, once. Returns if GOMP_SPINCOUNT or
/// OMP_WAIT_POLICY is set already, or if starting again fails.
void let_idle_threads_sleep(char** argv);

}  // namespace collar::apps
