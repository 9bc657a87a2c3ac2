// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as threads, each with an accelerator of its own (see threads_as_ranks).
#pragma once

#include <memory>
#include <utility>

#include "apps/accelerate/accelerator.hpp"
#include "tests/support/threads_as_ranks.hpp"

namespace collar::test {

/// Calls body(accelerator) as each of n ranks.
template <typename Body>
void threads_with_accelerators(int n, const AcceleratorOptions& options, Body body) {
  const Outcomes outcomes =
      outcomes_of_ranks(n, [&](std::unique_ptr<comm::Communicator> communicator) {
        Accelerator accelerator(options, std::move(communicator));
        body(accelerator);
      });
  if (outcomes.first) std::rethrow_exception(outcomes.first);
}

}  // namespace collar::test
