// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.hpp"

#include <cmath>

#include "engine/ops/conv.hpp"
#include "nn/init.hpp"

namespace collar::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features)
    : weight_(add_parameter("weight", {out_features, in_features})),
      bias_(add_parameter("bias", {out_features})) {}

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight_, bias_);
}

void Linear::reset_parameters(std::uint64_t seed, const std::string& path) {
  const double bound = 1 / std::sqrt(static_cast<double>(in_features()));
  fill_uniform(weight_, bound, seed, path + ".weight");
  fill_uniform(bias_, bound, seed, path + ".bias");
}

}  // namespace collar::nn
