// SPDX-License-Identifier: Apache-2.0
#include "nn/model_zoo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/core/error.hpp"
#include "nn/edit_distance.hpp"
#include "nn/residual_block.hpp"
#include "nn/weights.hpp"

namespace collar::nn {
namespace {

using Block = ResNetDescription::Block;
using Stem = ResNetDescription::Stem;

constexpr const char* kReleases =
    "https://github.com/huggingface/pytorch-image-models/releases/download/";

/// How the images of a set of weights were prepared.
struct Recipe {
  std::int64_t size, test_size;
  double crop, test_crop;
};
constexpr Recipe k176{176, 224, 0.875, 0.95};
constexpr Recipe k224{224, 288, 0.875, 0.95};
constexpr Recipe k224Late{224, 288, 0.95, 1.0};
constexpr Recipe k256{256, 320, 0.95, 1.0};
constexpr Recipe k256Tiered{256, 320, 0.94, 1.0};

ModelInfo model(const char* name, Block block, std::array<std::int64_t, 4> layers, Stem stem,
                const char* tag, const Recipe& recipe, const std::string& file) {
  const std::int64_t pool = (recipe.size + 31) / 32;
  const bool plain = stem == Stem::plain;
  return {.name = name,
          .description = {block, layers, stem, !plain},
          .pretrained = {.tag = tag,
                         .input_size = {3, recipe.size, recipe.size},
                         .test_input_size = {3, recipe.test_size, recipe.test_size},
                         .crop_pct = recipe.crop,
                         .test_crop_pct = recipe.test_crop,
                         .pool_size = {pool, pool},
                         .first_conv = plain ? "conv1" : "conv1.0",
                         .paper_ids =
                             std::string_view(tag).starts_with("a1") ? "arXiv:2110.00476" : ""},
          .weights_url = file.empty() ? "" : kReleases + file};
}

/// timm 1.0.31's plain, -d and -t residual networks.
const std::vector<ModelInfo>& zoo() {
  static const std::vector<ModelInfo> models{
      model("resnet10t", Block::basic, {1, 1, 1, 1}, Stem::deep_tiered, "c3_in1k", k176,
            "v0.1-rsb-weights/resnet10t_176_c3-f3215ab1.pth"),
      model("resnet14t", Block::bottleneck, {1, 1, 1, 1}, Stem::deep_tiered, "c3_in1k", k176,
            "v0.1-rsb-weights/resnet14t_176_c3-c4ed2c37.pth"),
      model("resnet18", Block::basic, {2, 2, 2, 2}, Stem::plain, "a1_in1k", k224Late,
            "v0.1-rsb-weights/resnet18_a1_0-d63eafa0.pth"),
      model("resnet18d", Block::basic, {2, 2, 2, 2}, Stem::deep, "ra2_in1k", k224,
            "v0.1-weights/resnet18d_ra2-48a79e06.pth"),
      model("resnet26", Block::bottleneck, {2, 2, 2, 2}, Stem::plain, "bt_in1k", k224,
            "v0.1-weights/resnet26-9aa10e23.pth"),
      model("resnet26d", Block::bottleneck, {2, 2, 2, 2}, Stem::deep, "bt_in1k", k224,
            "v0.1-weights/resnet26d-69e92c46.pth"),
      model("resnet26t", Block::bottleneck, {2, 2, 2, 2}, Stem::deep_tiered, "ra2_in1k", k256Tiered,
            "v0.1-attn-weights/resnet26t_256_ra2-6f6fa748.pth"),
      model("resnet34", Block::basic, {3, 4, 6, 3}, Stem::plain, "a1_in1k", k224Late,
            "v0.1-rsb-weights/resnet34_a1_0-46f8f793.pth"),
      model("resnet34d", Block::basic, {3, 4, 6, 3}, Stem::deep, "ra2_in1k", k224,
            "v0.1-weights/resnet34d_ra2-f8dcfcaf.pth"),
      model("resnet50", Block::bottleneck, {3, 4, 6, 3}, Stem::plain, "a1_in1k", k224Late,
            "v0.1-rsb-weights/resnet50_a1_0-14fe96d1.pth"),
      model("resnet50d", Block::bottleneck, {3, 4, 6, 3}, Stem::deep, "ra2_in1k", k224,
            "v0.1-weights/resnet50d_ra2-464e36ba.pth"),
      model("resnet50t", Block::bottleneck, {3, 4, 6, 3}, Stem::deep_tiered, "untrained", k224, ""),
      model("resnet101", Block::bottleneck, {3, 4, 23, 3}, Stem::plain, "a1h_in1k", k224Late,
            "v0.1-rsb-weights/resnet101_a1h-36d3f2aa.pth"),
      model("resnet101d", Block::bottleneck, {3, 4, 23, 3}, Stem::deep, "ra2_in1k", k256,
            "v0.1-weights/resnet101d_ra2-2803ffab.pth"),
      model("resnet152", Block::bottleneck, {3, 8, 36, 3}, Stem::plain, "a1h_in1k", k224Late,
            "v0.1-rsb-weights/resnet152_a1h-dc400468.pth"),
      model("resnet152d", Block::bottleneck, {3, 8, 36, 3}, Stem::deep, "ra2_in1k", k256,
            "v0.1-weights/resnet152d_ra2-5cac0439.pth"),
      model("resnet200", Block::bottleneck, {3, 24, 36, 3}, Stem::plain, "untrained", k224, ""),
      model("resnet200d", Block::bottleneck, {3, 24, 36, 3}, Stem::deep, "ra2_in1k", k256,
            "v0.1-weights/resnet200d_ra2-bdba9bf9.pth"),
  };
  return models;
}

}  // namespace

std::int64_t ModelInfo::num_features() const {
  return 512 *
         (description.block == Block::basic ? BasicBlock::kExpansion : Bottleneck::kExpansion);
}

std::string ModelInfo::hub_id() const {
  return weights_url.empty() ? "" : fmt::format("timm/{}.{}", name, pretrained.tag);
}

std::vector<std::string> list_models() {
  std::vector<std::string> names;
  for (const ModelInfo& info : zoo()) names.push_back(info.name);
  return names;
}

const ModelInfo& model_info(std::string_view name) {
  const auto fits = [name](const ModelInfo& info) {
    return name == info.name || name == info.name + "." + info.pretrained.tag;
  };
  const auto found = std::find_if(zoo().begin(), zoo().end(), fits);
  if (found != zoo().end()) return *found;

  const std::string_view stem = name.substr(0, name.find('.'));
  const auto nearest =
      std::min_element(zoo().begin(), zoo().end(), [stem](const ModelInfo& a, const ModelInfo& b) {
        return edit_distance(stem, a.name) < edit_distance(stem, b.name);
      });
  throw UsageError(fmt::format("unknown model \"{}\"; did you mean \"{}\"? There are: {}", name,
                               nearest->name, fmt::join(list_models(), ", ")));
}

std::unique_ptr<ResNet> create_model(std::string_view name, const ModelOptions& options) {
  const ModelInfo& info = model_info(name);
  if (options.num_classes == 0) {
    throw UsageError(fmt::format("{}: a model needs at least one class", info.name));
  }
  auto model =
      std::make_unique<ResNet>(info.description, static_cast<std::int64_t>(options.num_classes));
  if (options.weights.empty()) {
    model->initialize(options.seed);
  } else {
    model->classifier().initialize(options.seed, "fc");
    load_weights(*model, options.weights);
  }
  return model;
}

}  // namespace collar::nn
