// SPDX-License-Identifier: Apache-2.0
#include "nn/conv.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"
#include "nn/init.hpp"

namespace collar::nn {

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
               const Options& options)
    : geometry_{{options.stride, options.stride},
                {options.padding, options.padding},
                {options.dilation, options.dilation},
                options.groups} {
  if (options.groups < 1 || in_channels % options.groups != 0 ||
      out_channels % options.groups != 0) {
    throw UsageError(fmt::format("Conv2d: {} groups do not divide {} input and {} output channels",
                                 options.groups, in_channels, out_channels));
  }
  weight_ = add_parameter("weight", {out_channels, in_channels / options.groups, kernel, kernel});
  if (options.bias) bias_ = add_parameter("bias", {out_channels});
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight_, bias_, geometry_);
}

void Conv2d::reset_parameters(std::uint64_t seed, const std::string& path) {
  const auto fan_out = static_cast<double>(weight_.numel() / weight_.size(1));
  fill_normal(weight_, std::sqrt(2 / fan_out), seed, path + ".weight");
  if (bias_.defined()) fill_constant(bias_, 0);
}

}  // namespace collar::nn
