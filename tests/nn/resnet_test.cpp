// SPDX-License-Identifier: Apache-2.0
#include "nn/resnet.hpp"

#include <catch2/catch.hpp>
#include <span>
#include <string>
#include <vector>

#include "nn/model_zoo.hpp"
#include "tests/nn/formula_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

/// What timm 1.0.31 says of a model: reference/training-semantics.md 9.3; the -t models and
/// resnet200 from timm itself.
struct Known {
  const char* name;
  std::int64_t parameters_1000;
  std::int64_t parameters_37;
  std::size_t entries;
  std::int64_t features;
  const char* key_hash;
};

constexpr Known kKnown[] = {
    {"resnet10t", 5'435'488, 4'941'469, 86, 512, "b2325647af64361b"},
    {"resnet14t", 10'081'632, 8'108'445, 116, 2048, "91ab5fbb319aefd2"},
    {"resnet18", 11'689'512, 11'195'493, 122, 512, "779447cf0a59dec8"},
    {"resnet18d", 11'708'744, 11'214'725, 134, 512, "475fe91e1161a509"},
    {"resnet26", 15'995'176, 14'021'989, 176, 2048, "2af0df90e9b73882"},
    {"resnet26d", 16'014'408, 14'041'221, 188, 2048, "a197a12032d63dd5"},
    {"resnet26t", 16'011'872, 14'038'685, 188, 2048, "a197a12032d63dd5"},
    {"resnet34", 21'797'672, 21'303'653, 218, 512, "5aa6d4978ba3a10a"},
    {"resnet34d", 21'816'904, 21'322'885, 230, 512, "1dbe24cd70f75aef"},
    {"resnet50", 25'557'032, 23'583'845, 320, 2048, "8f960d1d00758a98"},
    {"resnet50d", 25'576'264, 23'603'077, 332, 2048, "951a1ebf58e70a9a"},
    {"resnet50t", 25'573'728, 23'600'541, 332, 2048, "951a1ebf58e70a9a"},
    {"resnet101", 44'549'160, 42'575'973, 626, 2048, "06870983fe3d8f04"},
    {"resnet101d", 44'568'392, 42'595'205, 638, 2048, "883de7f088c8122a"},
    {"resnet152", 60'192'808, 58'219'621, 932, 2048, "3e8a404c8d0a27d7"},
    {"resnet152d", 60'212'040, 58'238'853, 944, 2048, "53ccee9ed32fa4e0"},
    {"resnet200", 64'673'832, 62'700'645, 1220, 2048, "ef128b263462e0f8"},
    {"resnet200d", 64'693'064, 62'719'877, 1232, 2048, "b4607f325c893e32"},
};

std::string key_hash(const Module& model) {
  std::string keys;
  for (const Parameter& entry : model.state_dict()) {
    keys += (keys.empty() ? "" : "\n") + entry.name;
  }
  return collar::test::sha256_of(keys).substr(0, 16);
}

}  // namespace

TEST_CASE("Every model has timm's names in timm's order, and its number of parameters") {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    INFO(known.name);
    names.push_back(known.name);
    const ResNetDescription& description = model_info(known.name).description;
    const ResNet model(description, 1000);
    CHECK(model.parameter_count() == known.parameters_1000);
    CHECK(model.state_dict().size() == known.entries);
    CHECK(model.num_features() == known.features);
    CHECK(model_info(known.name).num_features() == known.features);
    CHECK(key_hash(model) == known.key_hash);
    CHECK(ResNet(description, 37).parameter_count() == known.parameters_37);
  }
  CHECK(names == list_models());
}

TEST_CASE("Every entry has timm's shape and type") {
  REQUIRE_SHARED(folder, "golden/models");
  for (const std::string name :
       {"resnet18", "resnet34", "resnet50", "resnet18d", "resnet26d", "resnet50d", "resnet101d"}) {
    INFO(name);
    const auto inventory = collar::test::read_json(folder / ("inventory_" + name + ".json"));
    const ResNet model(model_info(name).description, 1000);
    const Parameters state = model.state_dict();
    REQUIRE(state.size() == inventory["state_dict"].size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      const auto& golden = inventory["state_dict"][i];
      CHECK(state[i].name == golden["name"].get<std::string>());
      CHECK(state[i].tensor.shape() == Shape(golden["shape"].get<std::vector<std::int64_t>>()));
      CHECK(state[i].tensor.dtype() == (golden["dtype"] == "F32" ? DType::f32 : DType::i64));
      CHECK(state[i].tensor.requires_grad() == golden["parameter"].get<bool>());
    }
  }
}

TEST_CASE("A residual network goes from images of any size to logits") {
  collar::test::OnCpu on;
  for (const auto* name : {"resnet10t", "resnet14t", "resnet18"}) {
    auto model = nn::test::formula_model(name, 5, true, on.context());
    model->eval();
    NoGrad no_grad;
    const Tensor logits = (*model)(on.random({2, 3, 45, 70}, 1));
    CHECK(logits.shape() == Shape{2, 5});
    for (const float value : logits.to_vector<float>()) CHECK(std::isfinite(value));
  }
}

TEST_CASE("A frozen backbone records nothing, but its statistics move") {
  collar::test::OnCpu on;
  auto model = nn::test::formula_model("resnet10t", 5, true, on.context());
  model->freeze_all_but(model->classifier());
  CHECK(model->trainable_parameters().size() == 2);
  const Tensor features = model->forward_stem(on.random({2, 3, 32, 32}, 1));
  CHECK(features.is_leaf());
  CHECK_FALSE(features.requires_grad());
  for (const Parameter& buffer : model->named_buffers()) {
    if (buffer.name == "bn1.num_batches_tracked") CHECK(buffer.tensor.item() == 1);
  }
}

TEST_CASE("Only a rank that keeps statistics moves them") {
  collar::test::OnCpu on;
  auto model = nn::test::formula_model("resnet10t", 5, true, on.context());
  set_track_statistics(*model, false);
  const auto copies = [&] {
    std::vector<std::vector<float>> values;
    for (const Parameter& buffer : model->named_buffers()) {
      if (buffer.tensor.dtype() == DType::f32) values.push_back(buffer.tensor.to_vector<float>());
    }
    return values;
  };
  const auto before = copies();
  (*model)(on.random({2, 3, 32, 32}, 1));
  CHECK(copies() == before);
  set_track_statistics(*model, true);
  (*model)(on.random({2, 3, 32, 32}, 1));
  CHECK(copies() != before);
}
