// SPDX-License-Identifier: Apache-2.0
// Comparing a tensor with what golden/models records of it: norms, sums, the first values and the
// product with a probe, under the tolerance rule of golden/README-models.md, section 2.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/formula.hpp"
#include "tests/support/tensors.hpp"

namespace collar::test {

/// What a tensor may be off: 8 times PyTorch's own float32 error, at least `relative_floor` of its
/// norm. The floor is 1e-6 for features and buffers, and the file's kink_allowance (of the same
/// mode) for gradients.
inline double tolerance_of(const nlohmann::json& record, double relative_floor = 1e-6) {
  double error = 0;
  for (const nlohmann::json& value : record.at("err_l2"))
    error = std::max(error, value.get<double>());
  return std::max(8 * error, relative_floor * record.at("l2").get<double>());
}

/// Compares a tensor called `name` with its record {n, l2, sum, abs_sum, first, dot, err_l2}. Empty
/// if everything recorded is within the tolerance, else what is not.
inline std::string mismatch(const Tensor& tensor, const std::string& name,
                            const nlohmann::json& record, double relative_floor = 1e-6) {
  const std::vector<double> values = values_of(tensor);
  const double n = static_cast<double>(values.size());
  if (record.at("n").get<std::size_t>() != values.size())
    return fmt::format("{}: {} elements, expected {}", name, values.size(), record["n"].dump());

  double squares = 0, sum = 0, abs_sum = 0, dot = 0, probe_squares = 0;
  const std::vector<float> probe = formula::signed_unit("probe." + name, tensor.numel());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = static_cast<double>(probe[i]);
    squares += values[i] * values[i];
    sum += values[i];
    abs_sum += std::abs(values[i]);
    dot += values[i] * p;
    probe_squares += p * p;
  }

  const double tolerance = tolerance_of(record, relative_floor);
  std::string text;
  const auto check = [&](const std::string& what, double ours, double theirs, double allowed) {
    if (!(std::abs(ours - theirs) <= allowed))
      text += fmt::format("{}: {} is {:.9g}, expected {:.9g} +- {:.2g}\n", name, what, ours, theirs,
                          allowed);
  };
  check("l2", std::sqrt(squares), record.at("l2").get<double>(), tolerance);
  check("sum", sum, record.at("sum").get<double>(), tolerance * std::sqrt(n));
  check("dot", dot, record.at("dot").get<double>(), tolerance * std::sqrt(probe_squares));
  if (record.contains("abs_sum"))
    check("abs_sum", abs_sum, record["abs_sum"].get<double>(), tolerance * std::sqrt(n));
  const nlohmann::json& first = record.at("first");
  for (std::size_t i = 0; i < first.size(); ++i)
    check(fmt::format("value {}", i), values[i], first[i].get<double>(), tolerance);
  return text;
}

}  // namespace collar::test
