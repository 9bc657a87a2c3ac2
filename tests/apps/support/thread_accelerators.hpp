// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as threads, each with an accelerator of its own. What a rank throws first is
// thrown again in the test, because Catch2's checks belong to one thread: bodies report by throwing
// (expect) or by writing to places of their own.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/accelerate/accelerator.hpp"
#include "tests/support/threads_as_ranks.hpp"

namespace collar::test {

/// Calls body(accelerator) as each of n ranks.
template <typename Body>
void threads_with_accelerators(int n, const AcceleratorOptions& options, Body body) {
  std::vector<std::unique_ptr<comm::Communicator>> ranks = comm::create_thread_communicators(n);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::unique_ptr<comm::Communicator>& rank : ranks) {
    threads.emplace_back([&] {
      try {
        Accelerator accelerator(options, std::move(rank));
        body(accelerator);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace collar::test
