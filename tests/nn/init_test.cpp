// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "nn/conv.hpp"
#include "nn/model_zoo.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments moments_of(const Tensor& tensor) {
  Moments moments;
  const std::vector<float> values = tensor.to_vector<float>();
  for (const float value : values) {
    moments.mean += value;
    moments.deviation += static_cast<double>(value) * value;
    moments.largest = std::max(moments.largest, std::abs(static_cast<double>(value)));
  }
  const auto n = static_cast<double>(values.size());
  moments.mean /= n;
  moments.deviation = std::sqrt(moments.deviation / n - moments.mean * moments.mean);
  return moments;
}

Tensor entry_of(const Module& model, const std::string& name) {
  for (const Parameter& entry : model.state_dict()) {
    if (entry.name == name) return entry.tensor;
  }
  FAIL("no entry " << name);
  return {};
}

}  // namespace

TEST_CASE(
    "Fresh models start as timm's: kaiming convolutions, identity blocks, torch's linear layer") {
  const auto model = create_model("resnet18d", {.num_classes = 37, .seed = 3});
  const Moments conv = moments_of(entry_of(*model, "layer4.1.conv2.weight"));
  const double expected = std::sqrt(2.0 / (512 * 9));
  CHECK(conv.mean == Approx(0).margin(5 * expected / std::sqrt(512 * 512 * 9)));
  CHECK(conv.deviation == Approx(expected).epsilon(0.005));
  CHECK(conv.largest > 4 * expected);

  const Moments fc = moments_of(entry_of(*model, "fc.weight"));
  const double bound = 1 / std::sqrt(512.0);
  CHECK(fc.largest <= bound);
  CHECK(fc.largest > 0.999 * bound);
  CHECK(fc.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(moments_of(entry_of(*model, "fc.bias")).largest <= bound);

  CHECK(moments_of(entry_of(*model, "layer1.0.bn2.weight")).largest == 0);
  CHECK(moments_of(entry_of(*model, "layer1.0.bn1.weight")).mean == 1);
  CHECK(moments_of(entry_of(*model, "layer2.0.downsample.2.weight")).mean == 1);
  CHECK(moments_of(entry_of(*model, "bn1.bias")).largest == 0);
  CHECK(moments_of(entry_of(*model, "bn1.running_var")).mean == 1);
}

TEST_CASE("A convolution in groups starts as torch's: its fan-out is that of all groups") {
  Conv2d conv(64, 128, 3, {.groups = 4});
  conv.initialize(3);
  // torch.nn.init._calculate_fan_in_and_fan_out gives (144, 1152) for this weight.
  const Tensor weight = entry_of(conv, "weight");
  CHECK(weight.shape() == Shape{128, 16, 3, 3});
  CHECK(moments_of(weight).deviation == Approx(std::sqrt(2.0 / 1152)).epsilon(0.03));
}

TEST_CASE("Initial values depend on the seed and on the name, and on nothing else") {
  const auto one = create_model("resnet10t", {.num_classes = 4, .seed = 3});
  const auto again = create_model("resnet10t", {.num_classes = 4, .seed = 3});
  const auto other_seed = create_model("resnet10t", {.num_classes = 4, .seed = 4});
  const auto other_model = create_model("resnet18", {.num_classes = 7, .seed = 3});
  const auto values = [](const auto& model, const char* name) {
    return entry_of(*model, name).template to_vector<float>();
  };
  const char* conv = "layer2.0.conv1.weight";
  CHECK(values(one, conv) == values(again, conv));
  CHECK(values(one, conv) != values(other_seed, conv));
  CHECK(values(one, conv) == values(other_model, conv));
  CHECK(values(one, "layer1.0.conv1.weight") != values(one, "layer1.0.conv2.weight"));
}
