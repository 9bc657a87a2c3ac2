// SPDX-License-Identifier: Apache-2.0
// The convolution layer.
#pragma once

#include "engine/ops/conv.hpp"
#include "nn/module.hpp"

namespace collar::nn {

/// weight [out, in / groups, rows, columns], and bias [out] if asked for. Initial values: kaiming
/// normal over the outputs (timm's), bias 0.
class Conv2d final : public Module {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
    bool bias = false;
  };

  /// A square kernel. Throws UsageError for channels that the groups do not divide.
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
         const Options& options);
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel)
      : Conv2d(in_channels, out_channels, kernel, Options()) {}

  Tensor forward(const Tensor& x) override;

  const Tensor& weight() const { return weight_; }
  const Conv2dOptions& geometry() const { return geometry_; }

 private:
  void reset_parameters(std::uint64_t seed, const std::string& path) override;

  Conv2dOptions geometry_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace collar::nn
