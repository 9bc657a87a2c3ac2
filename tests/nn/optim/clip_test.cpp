// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/clip.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/core/error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_ops.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

/// The gradient of a case: the common one, scaled, one value of b made bad if the case says so.
Tensor gradient_of(const collar::test::OpCase& golden, const std::string& name) {
  Tensor gradient = golden.tensor("g/" + name);
  const float scale = golden.attributes()["gradient_scale"];
  for (std::int64_t i = 0; i < gradient.numel(); ++i) gradient.data<float>()[i] *= scale;
  const auto& bad = golden.attributes()["bad_value"];
  if (name == "b" && !bad.is_null()) {
    gradient.data<float>()[2 * 5 + 3] = bad == "b[2,3] = inf" ? INFINITY : NAN;
  }
  return gradient;
}

Parameter with_gradient(const std::string& name, const Tensor& gradient, DeviceContext& context) {
  Tensor parameter = Tensor::zeros(gradient.shape(), DType::f32, &context);
  parameter.set_requires_grad(true);
  parameter.set_grad_storage(gradient.clone().to(context));
  parameter.set_grad_valid(true);
  return {name, parameter};
}

}  // namespace

TEST_CASE("Clipping by the norm is torch's") {
  REQUIRE_SHARED(folder, "golden/ops");
  collar::test::OnCpu on;
  int compared = 0;
  for (const auto& golden : collar::test::GoldenOps(folder).cases("clip_grad_norm")) {
    INFO(golden.name());
    if (!golden.error().empty() || golden.attributes()["norm_type"] != 2.0) continue;
    Parameters parameters;
    for (const std::string name : {"a", "b", "c"}) {
      parameters.push_back(with_gradient(name, gradient_of(golden, name), on.context()));
    }
    const double norm = clip_grad_norm(parameters, golden.attributes()["max_norm"]);
    const double expected =
        std::strtod(golden.definition()["total_norm"].get<std::string>().c_str(), nullptr);
    CHECK((std::isnan(expected) ? std::isnan(norm) : norm == Approx(expected).epsilon(1e-12)));
    for (const Parameter& parameter : parameters) {
      CHECK(golden.mismatch(parameter.name, parameter.tensor.grad()) == "");
    }
    ++compared;
  }
  CHECK(compared >= 8);
}

TEST_CASE("Parameters without a gradient are no part of the norm") {
  collar::test::OnCpu on;
  const Parameters parameters{with_gradient("a", on.tensor({3, 0}, {2}), on.context()),
                              with_gradient("b", on.tensor({4}, {1}), on.context()),
                              {"c", on.leaf(on.tensor({100}, {1}))}};
  CHECK(gradient_norm(parameters) == 5);
  CHECK(clip_grad_norm(parameters, 10) == 5);
  CHECK(parameters[0].tensor.grad().to_vector<float>()[0] == 3);
  CHECK(clip_grad_norm(parameters, 1) == 5);
  CHECK(gradient_norm(parameters) == Approx(1).epsilon(1e-6));
  CHECK(gradient_norm({}) == 0);
  CHECK_THROWS_AS(clip_grad_norm(parameters, -1), UsageError);
}
