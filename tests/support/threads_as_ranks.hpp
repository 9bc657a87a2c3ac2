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
#include <utility>
#include <vector>

#include "comm/create_communicator.hpp"

namespace collar::test {

/// What bodies check with.
inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

/// What ranks threw: null where one did not.
struct Outcomes {
  std::vector<std::exception_ptr> of_rank;
  std::exception_ptr first;  ///< in time
};

/// Runs body(communicator) as each of n ranks, which owns its std::unique_ptr<Communicator>.
template <typename Body>
Outcomes outcomes_of_ranks(int n, Body body, const comm::HostOptions& options = {}) {
  std::vector<std::unique_ptr<comm::Communicator>> ranks =
      comm::create_thread_communicators(n, options);
  Outcomes outcomes{std::vector<std::exception_ptr>(ranks.size()), nullptr};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(std::move(ranks[rank]));
      } catch (...) {
        const std::lock_guard lock(mutex);
        outcomes.of_rank[rank] = std::current_exception();
        if (!outcomes.first) outcomes.first = outcomes.of_rank[rank];
      }
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// A body of ranks that leave the group when they are through.
template <typename Body>
auto leaving_after(Body& body) {
  return [&body](std::unique_ptr<comm::Communicator> communicator) { body(*communicator); };
}

/// Runs body(Communicator&) as each of n ranks.
template <typename Body>
void threads_as_ranks(int n, Body body, const comm::HostOptions& options = {}) {
  const Outcomes outcomes = outcomes_of_ranks(n, leaving_after(body), options);
  if (outcomes.first) std::rethrow_exception(outcomes.first);
}

/// The messages of what the ranks threw; empty for a rank that did not throw.
template <typename Body>
std::vector<std::string> messages_of_ranks(int n, Body body,
                                           const comm::HostOptions& options = {}) {
  std::vector<std::string> messages;
  const Outcomes outcomes = outcomes_of_ranks(n, leaving_after(body), options);
  for (const std::exception_ptr& outcome : outcomes.of_rank) {
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
