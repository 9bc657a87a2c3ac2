// SPDX-License-Identifier: Apache-2.0
// Modules without state: pooling and the ReLU, for networks that are put together with Sequential.
#pragma once

#include "engine/ops/pointwise.hpp"
#include "engine/ops/pool.hpp"
#include "nn/module.hpp"

namespace collar::nn {

class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(const Pool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

class AvgPool2d final : public Module {
 public:
  explicit AvgPool2d(const Pool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

/// The mean over H and W: [N, C, H, W] to [N, C].
class GlobalAvgPool final : public Module {
 public:
  Tensor forward(const Tensor& x) override { return global_avg_pool(x); }
};

class ReLU final : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
};

}  // namespace collar::nn
