// SPDX-License-Identifier: Apache-2.0
// Plays the ranks of a group by threads of the test. What a rank throws first is thrown again in
// the test after all have ended, because Catch2's own checks belong to one thread: bodies report by
// throwing (expect).
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/create_communicator.hpp"

namespace collar::test {

/// What bodies check with.
inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

/// Runs body(communicator) as each of n ranks and returns what each threw (null where it did not).
template <typename Body>
std::vector<std::exception_ptr> outcomes_of_ranks(int n, Body body,
                                                  const comm::HostOptions& options,
                                                  std::exception_ptr& first) {
  std::vector<std::unique_ptr<comm::Communicator>> ranks =
      comm::create_thread_communicators(n, options);
  std::vector<std::exception_ptr> outcomes(ranks.size());
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        outcomes[rank] = std::current_exception();
        if (!first) first = outcomes[rank];
      }
      ranks[rank].reset();  // a rank that is through leaves the group
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

template <typename Body>
void threads_as_ranks(int n, Body body, const comm::HostOptions& options = {}) {
  std::exception_ptr first;
  outcomes_of_ranks(n, body, options, first);
  if (first) std::rethrow_exception(first);
}

/// The messages of what the ranks threw; empty for a rank that did not throw.
template <typename Body>
std::vector<std::string> messages_of_ranks(int n, Body body,
                                           const comm::HostOptions& options = {}) {
  std::exception_ptr first;
  std::vector<std::string> messages;
  for (const std::exception_ptr& outcome : outcomes_of_ranks(n, body, options, first)) {
    messages.emplace_back();
    try {
      if (outcome) std::rethrow_exception(outcome);
    } catch (const std::exception& error) {
      messages.back() = error.what();
    }
  }
  return messages;
}

}  // namespace collar::test
