// SPDX-License-Identifier: Apache-2.0
#include "nn/residual_block.hpp"

#include <utility>

#include "engine/ops/pool.hpp"

namespace collar::nn {
namespace {

bool changes_shape(const BlockOptions& options, std::int64_t expansion) {
  return options.stride != 1 || options.in_channels != options.planes * expansion;
}

}  // namespace

Downsample::Downsample(const BlockOptions& options, std::int64_t out_channels)
    : pool_stride_(options.avg_down ? options.stride : 1),
      conv_(add<Conv2d>(options.avg_down ? "1" : "0", options.in_channels, out_channels, 1,
                        Conv2d::Options{.stride = options.avg_down ? 1 : options.stride})),
      norm_(add<BatchNorm2d>(options.avg_down ? "2" : "1", out_channels)) {}

Tensor Downsample::forward(const Tensor& x) {
  if (pool_stride_ == 1) return norm_(conv_(x));
  const Tensor pooled = avg_pool2d(x, {.kernel = {2, 2},
                                       .stride = {pool_stride_, pool_stride_},
                                       .ceil_mode = true,
                                       .count_include_pad = false});
  return norm_(conv_(pooled));
}

BasicBlock::BasicBlock(const BlockOptions& options)
    : conv1_(add<Conv2d>("conv1", options.in_channels, options.planes, 3,
                         Conv2d::Options{.stride = options.stride, .padding = 1})),
      bn1_(add<BatchNorm2d>("bn1", options.planes)),
      conv2_(
          add<Conv2d>("conv2", options.planes, options.planes, 3, Conv2d::Options{.padding = 1})),
      bn2_(add<BatchNorm2d>("bn2", options.planes)),
      downsample_(changes_shape(options, kExpansion)
                      ? &add<Downsample>("downsample", options, options.planes * kExpansion)
                      : nullptr) {}

Tensor BasicBlock::forward(const Tensor& x) {
  Tensor y = bn1_(conv1_(x), {.relu = true});
  y = conv2_(y);
  return bn2_(std::move(y), {.relu = true, .residual = downsample_ ? (*downsample_)(x) : x});
}

void BasicBlock::reset_parameters(std::uint64_t /*seed*/, const std::string& /*path*/) {
  bn2_.zero_weight();
}

Bottleneck::Bottleneck(const BlockOptions& options)
    : conv1_(add<Conv2d>("conv1", options.in_channels, options.planes, 1)),
      bn1_(add<BatchNorm2d>("bn1", options.planes)),
      conv2_(add<Conv2d>("conv2", options.planes, options.planes, 3,
                         Conv2d::Options{.stride = options.stride, .padding = 1})),
      bn2_(add<BatchNorm2d>("bn2", options.planes)),
      conv3_(add<Conv2d>("conv3", options.planes, options.planes * kExpansion, 1)),
      bn3_(add<BatchNorm2d>("bn3", options.planes * kExpansion)),
      downsample_(changes_shape(options, kExpansion)
                      ? &add<Downsample>("downsample", options, options.planes * kExpansion)
                      : nullptr) {}

Tensor Bottleneck::forward(const Tensor& x) {
  Tensor y = bn1_(conv1_(x), {.relu = true});
  y = bn2_(conv2_(y), {.relu = true});
  y = conv3_(y);
  return bn3_(std::move(y), {.relu = true, .residual = downsample_ ? (*downsample_)(x) : x});
}

void Bottleneck::reset_parameters(std::uint64_t /*seed*/, const std::string& /*path*/) {
  bn3_.zero_weight();
}

}  // namespace collar::nn
