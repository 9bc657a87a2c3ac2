// SPDX-License-Identifier: Apache-2.0
#include "nn/resnet.hpp"

#include "engine/ops/pool.hpp"
#include "nn/conv.hpp"
#include "nn/residual_block.hpp"

namespace collar::nn {
namespace {

constexpr std::int64_t kStemChannels = 64;

/// Three 3x3 convolutions in the place of one 7x7. The children have timm's names; 2 and 5 are the
/// ReLUs.
class DeepStem final : public Module {
 public:
  explicit DeepStem(std::int64_t first, std::int64_t second)
      : conv0_(add<Conv2d>("0", 3, first, 3, Conv2d::Options{.stride = 2, .padding = 1})),
        bn1_(add<BatchNorm2d>("1", first)),
        conv3_(add<Conv2d>("3", first, second, 3, Conv2d::Options{.padding = 1})),
        bn4_(add<BatchNorm2d>("4", second)),
        conv6_(add<Conv2d>("6", second, kStemChannels, 3, Conv2d::Options{.padding = 1})) {}

  Tensor forward(const Tensor& x) override {
    Tensor y = bn1_(conv0_(x), {.relu = true});
    y = bn4_(conv3_(y), {.relu = true});
    return conv6_(y);
  }

 private:
  Conv2d& conv0_;
  BatchNorm2d& bn1_;
  Conv2d& conv3_;
  BatchNorm2d& bn4_;
  Conv2d& conv6_;
};

/// `count` blocks at the end of a stage, the first with the stride and the change of channels.
template <typename Block>
void append_blocks(Sequential& stage, std::int64_t count, BlockOptions options) {
  for (std::int64_t i = 0; i < count; ++i) {
    stage.append<Block>(options);
    options.in_channels = options.planes * Block::kExpansion;
    options.stride = 1;
  }
}

std::int64_t expansion_of(ResNetDescription::Block block) {
  return block == ResNetDescription::Block::basic ? BasicBlock::kExpansion : Bottleneck::kExpansion;
}

}  // namespace

Module& ResNet::add_stem(ResNetDescription::Stem stem) {
  switch (stem) {
    case ResNetDescription::Stem::plain:
      break;
    case ResNetDescription::Stem::deep:
      return add<DeepStem>("conv1", 32, 32);
    case ResNetDescription::Stem::deep_tiered:
      return add<DeepStem>("conv1", 24, 32);
  }
  return add<Conv2d>("conv1", 3, kStemChannels, 7, Conv2d::Options{.stride = 2, .padding = 3});
}

std::array<Sequential*, 4> ResNet::add_stages(const ResNetDescription& description) {
  std::array<Sequential*, 4> stages{};
  BlockOptions options{.in_channels = kStemChannels, .avg_down = description.avg_down};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i] = &add<Sequential>("layer" + std::to_string(i + 1));
    options.planes = std::int64_t{64} << i;
    options.stride = i == 0 ? 1 : 2;
    if (description.block == ResNetDescription::Block::basic) {
      append_blocks<BasicBlock>(*stages[i], description.layers[i], options);
    } else {
      append_blocks<Bottleneck>(*stages[i], description.layers[i], options);
    }
    options.in_channels = options.planes * expansion_of(description.block);
  }
  return stages;
}

ResNet::ResNet(const ResNetDescription& description, std::int64_t num_classes)
    : conv1_(add_stem(description.stem)),
      bn1_(add<BatchNorm2d>("bn1", kStemChannels)),
      stages_(add_stages(description)),
      fc_(add<Linear>("fc", 512 * expansion_of(description.block), num_classes)) {}

Tensor ResNet::forward(const Tensor& images) {
  Tensor x = forward_stem(images);
  for (Sequential* stage : stages_) x = (*stage)(x);
  return forward_head(x);
}

Tensor ResNet::forward_stem(const Tensor& images) {
  const Tensor x = bn1_(conv1_(images), {.relu = true});
  return max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}

Tensor ResNet::forward_head(const Tensor& features) {
  return fc_(global_avg_pool(features));
}

}  // namespace collar::nn
