// SPDX-License-Identifier: Apache-2.0
// A finished training run for the verbs that use one.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/support/small_runs.hpp"

namespace collar::test {

/// Its photos were prepared in an unusual way: whoever uses the model has to know.
class TrainedRun {
 public:
  TrainedRun() {
    const Finished finished =
        runs_.train("run", {"--transform", "timm", "--mean", "0.4,0.5,0.6", "--crop-pct", "0.8"});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
  }
  std::string model() const { return runs_.run("run"); }
  std::filesystem::path photos() const { return runs_.photos(); }
  /// What training said last about the photos to validate.
  nlohmann::json last_epoch() const { return runs_.metrics("run").back(); }

 private:
  SmallRuns runs_;
};

}  // namespace collar::test
