// SPDX-License-Identifier: Apache-2.0
// The two residual blocks of He et al., "Deep residual learning for image recognition" (2015), with
// the shortcuts of "Bag of tricks" (2018: ResNet-d). Every normalisation takes the ReLU and the
// addition behind it along.
#pragma once

#include "nn/batch_norm.hpp"
#include "nn/conv.hpp"
#include "nn/module.hpp"

namespace collar::nn {

struct BlockOptions {
  std::int64_t in_channels = 64;
  std::int64_t planes = 64;  ///< channels of the block's inner convolutions
  std::int64_t stride = 1;
  bool avg_down = false;  ///< a shortcut with stride averages and then convolves (ResNet-d)
};

/// The shortcut of a block that changes the shape: [average pool,] 1x1 convolution, batch norm.
/// Names as in timm: "0" and "1", or "1" and "2" behind the pool.
class Downsample final : public Module {
 public:
  Downsample(const BlockOptions& options, std::int64_t out_channels);
  Tensor forward(const Tensor& x) override;

 private:
  std::int64_t pool_stride_;  // 1: no pool
  Conv2d& conv_;
  BatchNorm2d& norm_;
};

/// Two 3x3 convolutions.
class BasicBlock final : public Module {
 public:
  static constexpr std::int64_t kExpansion = 1;  ///< output channels per plane

  explicit BasicBlock(const BlockOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  void reset_parameters(std::uint64_t seed, const std::string& path) override;

  Conv2d& conv1_;
  BatchNorm2d& bn1_;
  Conv2d& conv2_;
  BatchNorm2d& bn2_;
  Downsample* downsample_;  // null: the identity
};

/// 1x1 to few channels, 3x3 with the stride, 1x1 to four times as many.
class Bottleneck final : public Module {
 public:
  static constexpr std::int64_t kExpansion = 4;

  explicit Bottleneck(const BlockOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  void reset_parameters(std::uint64_t seed, const std::string& path) override;

  Conv2d& conv1_;
  BatchNorm2d& bn1_;
  Conv2d& conv2_;
  BatchNorm2d& bn2_;
  Conv2d& conv3_;
  BatchNorm2d& bn3_;
  Downsample* downsample_;
};

}  // namespace collar::nn
