// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/decay.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "kernels/core/error.hpp"
#include "tests/nn/schedule/golden_schedules.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::nn;
using nn::test::check_rates;

namespace {

/// The formula of a torch class; empty for the classes that have tests of their own.
RateFormula formula_of(const std::string& name, const nlohmann::json& a) {
  const auto steps = [&](const char* key, std::int64_t standard) { return a.value(key, standard); };
  const auto number = [&](const char* key, double standard) { return a.value(key, standard); };
  if (name == "StepLR") return rate::StepLR{steps("step_size", 30), number("gamma", 0.1)};
  if (name == "MultiStepLR") {
    return rate::MultiStepLR{a["milestones"].get<std::vector<std::int64_t>>(),
                             number("gamma", 0.1)};
  }
  if (name == "ExponentialLR") return rate::ExponentialLR{number("gamma", 0.9)};
  if (name == "CosineAnnealingLR") {
    return rate::CosineAnnealingLR{steps("T_max", 1), number("eta_min", 0)};
  }
  if (name == "LinearLR") {
    return rate::LinearLR{number("start_factor", 1.0 / 3), number("end_factor", 1),
                          steps("total_iters", 5)};
  }
  if (name == "ConstantLR") {
    return rate::ConstantLR{number("factor", 1.0 / 3), steps("total_iters", 5)};
  }
  if (name == "PolynomialLR") {
    return rate::PolynomialLR{steps("total_iters", 5), number("power", 1)};
  }
  if (name == "SequentialLR") {
    rate::SequentialLR sequence{.milestones = a["milestones"].get<std::vector<std::int64_t>>()};
    for (const auto& part : a["schedulers"]) {
      sequence.formulas.push_back(formula_of(part["class"], part));
    }
    return sequence;
  }
  return {};
}

}  // namespace

TEST_CASE("Decays are those of torch.optim.lr_scheduler") {
  REQUIRE_SHARED(path, "golden/schedules/torch.json");
  int compared = 0;
  const auto file = collar::test::read_json(path);
  for (const auto& golden : file["cases"]) {
    const RateFormula formula = formula_of(golden["class"], golden["arguments"]);
    if (!formula) continue;
    INFO(golden["class"] << " " << golden["arguments"]);
    // torch goes from one step of this cosine to the next, and is 3.5e-14 off its own closed form
    // after a hundred of them.
    const bool recursive = golden["class"] == "CosineAnnealingLR";
    check_rates(formula, golden, recursive ? 1e-13 : 1e-14);
    ++compared;
  }
  CHECK(compared == 16);
}

TEST_CASE("A schedule that cannot be is refused") {
  CHECK_THROWS_AS((rate::StepLR{.step_size = 0}(0, 0.1)), UsageError);
  CHECK_THROWS_AS((rate::CosineAnnealingLR{.t_max = 0}(0, 0.1)), UsageError);
  CHECK_THROWS_AS(
      (rate::SequentialLR{.formulas = {rate::ExponentialLR{}}, .milestones = {3}}(0, 1)),
      UsageError);
}
