// SPDX-License-Identifier: Apache-2.0
// Residual networks, all from one description: plain, -d (deep stem, averaging shortcuts) and -t
// (tiered stem), of basic or bottleneck blocks. Names, shapes and arithmetic are timm's; a plain
// one is torchvision's too.
#pragma once

#include <array>
#include <cstdint>

#include "nn/batch_norm.hpp"
#include "nn/linear.hpp"
#include "nn/module.hpp"
#include "nn/sequential.hpp"

namespace collar::nn {

struct ResNetDescription {
  enum class Block : std::uint8_t { basic, bottleneck };
  enum class Stem : std::uint8_t {
    plain,       ///< one 7x7 convolution
    deep,        ///< three 3x3 convolutions of 32, 32 and 64 channels
    deep_tiered  ///< of 24, 32 and 64 channels
  };

  Block block = Block::bottleneck;
  std::array<std::int64_t, 4> layers{3, 4, 6, 3};  ///< blocks in each stage
  Stem stem = Stem::plain;
  bool avg_down = false;
};

class ResNet final : public Module {
 public:
  /// On the host, with parameters of no value yet: initialize() or load_weights() gives them one.
  ResNet(const ResNetDescription& description, std::int64_t num_classes);

  /// Images [N, 3, H, W] to logits [N, classes].
  Tensor forward(const Tensor& images) override;

  // The parts of forward(), in order.
  Tensor forward_stem(const Tensor& images);  ///< to the max-pool: [N, 64, H/4, W/4]
  Sequential& stage(std::size_t index) { return *stages_.at(index); }  ///< layer1 … layer4
  Tensor forward_head(const Tensor& features);                         ///< pooled, classified

  /// The last layer, fc.
  Linear& classifier() { return fc_; }
  std::int64_t num_features() const { return fc_.in_features(); }
  std::int64_t num_classes() const { return fc_.out_features(); }

 private:
  Module& add_stem(ResNetDescription::Stem stem);
  std::array<Sequential*, 4> add_stages(const ResNetDescription& description);

  Module& conv1_;
  BatchNorm2d& bn1_;
  std::array<Sequential*, 4> stages_;
  Linear& fc_;
};

}  // namespace collar::nn
