// SPDX-License-Identifier: Apache-2.0
// How much a test tries: `scripts/test --full` sets COLLAR_FULL_TESTS=1, and what is only sampled
// otherwise (long fuzzing, many kills, real training) is then done at length.
#pragma once

#include <cstdlib>
#include <string_view>

#include "tests/support/golden.hpp"

namespace collar::test {

inline bool full_tests() {
  const char* wanted = std::getenv("COLLAR_FULL_TESTS");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

/// Repetitions of a random test.
inline int rounds(int quick, int full) {
  return full_tests() ? full : quick;
}

}  // namespace collar::test

/// Leaves the test case, counted as skipped, unless all tests are wanted in full.
#define REQUIRE_FULL_TESTS() \
  if (!collar::test::full_tests()) COLLAR_SKIP("too slow for every day: scripts/test --full")
