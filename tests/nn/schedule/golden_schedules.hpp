// SPDX-License-Identifier: Apache-2.0
// What the schedule tests share: an optimizer with one parameter, and the comparison with recorded
// rates.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "nn/optim/sgd.hpp"
#include "nn/schedule/schedule.hpp"

namespace collar::nn::test {

inline Parameters one_parameter() {
  return {{"p", Tensor::zeros({1})}};
}

/// Whether `got` is the recorded value up to the last places of the C library's cosine. `scale` is
/// the largest rate.
inline bool agrees(double got, double recorded, double scale, double relative = 1e-14) {
  return std::abs(got - recorded) <= relative * std::abs(recorded) + 1e-17 * scale;
}

/// Compares formula(step, base) with case["values"], step by step.
inline void check_rates(const RateFormula& formula, const nlohmann::json& golden,
                        double relative = 1e-14) {
  const double base = golden["base_lr"];
  const auto values = golden["values"].get<std::vector<double>>();
  for (std::size_t step = 0; step < values.size(); ++step) {
    INFO("step " << step);
    const double got = formula(static_cast<std::int64_t>(step), base);
    CAPTURE(got, values[step]);
    CHECK(agrees(got, values[step], base, relative));
  }
}

}  // namespace collar::nn::test
