// SPDX-License-Identifier: Apache-2.0
// A run's result does not depend on how its logical ranks are spread over processes: the trained
// models are the same, byte for byte.
#include <catch2/catch.hpp>

#include "tests/apps/support/small_runs.hpp"

using collar::test::Finished;
using collar::test::SmallRuns;

namespace {

/// The bytes of the model that these options give.
std::string trained(const SmallRuns& runs, std::vector<std::string> options) {
  static int number = 0;
  const std::string name = "run-" + std::to_string(number++);
  const Finished finished = runs.train(name, options);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  std::string bytes = runs.model(name);
  REQUIRE(bytes.size() > 40'000'000);
  return bytes;
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using Options = std::vector<std::string>;

// Comparing with == inside CHECK would print 45 MB.
bool same(const std::string& a, const std::string& b) {
  return a == b;
}

}  // namespace

TEST_CASE("Four ranks are four processes, two times two, or one process, bit for bit") {
  const SmallRuns runs;
  const std::string reference = trained(runs, {"--virtual-ranks", "4"});
  CHECK(same(trained(runs, {"-n", "4"}), reference));
  CHECK(same(trained(runs, {"-n", "2", "--virtual-ranks", "2"}), reference));
}

TEST_CASE("So they are with clipping and accumulation, whatever the buckets") {
  const SmallRuns runs;
  const Options recipe{"--clip-grad", "0.5", "--grad-accum-steps", "2"};
  const Options small_buckets{"--bucket-cap-mb", "0.0625"};
  const std::string reference = trained(runs, recipe + Options{"--virtual-ranks", "4"});
  CHECK(same(trained(runs, recipe + Options{"-n", "4"}), reference));
  CHECK(same(trained(runs, recipe + small_buckets + Options{"-n", "4"}), reference));
  CHECK(same(trained(runs, recipe + small_buckets + Options{"-n", "2", "--virtual-ranks", "2"}),
             reference));
  CHECK_FALSE(same(trained(runs, Options{"--clip-grad", "0.6", "--grad-accum-steps", "2",
                                         "--virtual-ranks", "4"}),
                   reference));
}

TEST_CASE("Three ranks are three processes or one") {
  const SmallRuns runs;
  const Options recipe{"--opt", "sgd", "--lr", "0.01", "--freeze", "backbone"};
  const std::string reference = trained(runs, {"--virtual-ranks", "3"});
  CHECK(same(trained(runs, {"-n", "3"}), reference));
  CHECK(same(trained(runs, recipe + Options{"-n", "3"}),
             trained(runs, recipe + Options{"--virtual-ranks", "3"})));
}

TEST_CASE("Two ranks give the same by the ring and directly") {
  const SmallRuns runs;
  const std::string reference = trained(runs, {"-n", "2"});
  CHECK(same(trained(runs, {"-n", "2", "--all-reduce", "ring"}), reference));
  CHECK(same(trained(runs, {"-n", "2", "--all-reduce", "ring", "--bucket-cap-mb", "0.0625"}),
             reference));
}
