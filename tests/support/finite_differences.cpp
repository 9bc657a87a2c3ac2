// SPDX-License-Identifier: Apache-2.0
#include "tests/support/finite_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collar::test {
namespace {

// Slopes of the function to the right and to the left of one element.
struct Slopes {
  double right;
  double left;
  double central() const { return (right + left) / 2; }
};

Slopes slopes(const std::function<Tensor(const std::vector<Tensor>&)>& function,
              std::vector<Tensor>& inputs, std::size_t input, std::int64_t element, double step) {
  const NoGrad no_grad;
  Tensor& x = inputs[input];
  const float original = x.data<float>()[element];
  const auto evaluate_at = [&](float value) {
    x.data<float>()[element] = value;
    x.changed_in_place();
    return function(inputs).item();
  };
  const float above = original + static_cast<float>(step);
  const float below = original - static_cast<float>(step);
  const double at_above = evaluate_at(above);
  const double at_below = evaluate_at(below);
  const double here = evaluate_at(original);
  return {(at_above - here) / (static_cast<double>(above) - original),
          (here - at_below) / (original - static_cast<double>(below))};
}

}  // namespace

GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              std::vector<Tensor> inputs, double step) {
  for (Tensor& input : inputs) {
    input.set_requires_grad(true);
    input.zero_grad();
  }
  function(inputs).backward();
  GradientCheck check;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].grad().defined()) {
      check.failure = fmt::format("input {} got no gradient", i);
      return check;
    }
    const std::vector<float> gradient = inputs[i].grad().to_vector<float>();
    float largest = 1e-3f;
    for (const float value : gradient) largest = std::max(largest, std::fabs(value));
    const double tolerance = 2e-3 * largest;
    for (std::int64_t element = 0; element < inputs[i].numel(); ++element) {
      const Slopes wide = slopes(function, inputs, i, element, step);
      const Slopes narrow = slopes(function, inputs, i, element, step / 2);
      const bool bends = std::fabs(narrow.right - narrow.left) > 8 * tolerance;
      if (bends || std::fabs(wide.central() - narrow.central()) > 2 * tolerance) {
        ++check.kinks;
        continue;
      }
      ++check.compared;
      const double found = gradient[static_cast<std::size_t>(element)];
      if (!(std::fabs(narrow.central() - found) <= 3 * tolerance) && check.failure.empty()) {
        check.failure = fmt::format("input {} element {}: gradient {}, differences {} and {}", i,
                                    element, found, wide.central(), narrow.central());
      }
    }
  }
  return check;
}

}  // namespace collar::test
