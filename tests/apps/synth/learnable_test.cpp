// SPDX-License-Identifier: Apache-2.0
// The toy pets from end to end: a small network tells the breeds apart by more than their colours.
#include <catch2/catch.hpp>

#include "tests/apps/support/small_runs.hpp"
#include "tests/support/effort.hpp"

namespace {

/// Top-1 accuracy (percent) on photos of five breeds that training has not seen: chance is 20, and
/// the mean colour gives less than 40 (pet_folder_test.cpp).
double accuracy(int photos, int size, int epochs) {
  const collar::test::SmallRuns runs({.classes = 5, .train = photos, .valid = 30, .seed = 1});
  const auto finished = runs.train(
      "run", {"--model", "resnet10t", "--img-size", std::to_string(size), "--batch-size", "16",
              "--opt", "adamw", "--lr", "3e-3", "--sched", "cosine", "--warmup-steps", "10",
              "--epochs", std::to_string(epochs), "--hflip", "0.5"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return runs.metrics("run").back().at("top1").get<double>();
}

}  // namespace

TEST_CASE("A small network learns the toy pets in a few epochs") {
  CHECK(accuracy(40, 32, 8) > 35);
}

TEST_CASE("A small network that looks longer and closer knows most toy pets") {
  REQUIRE_FULL_TESTS();
  CHECK(accuracy(60, 48, 12) > 60);
}
