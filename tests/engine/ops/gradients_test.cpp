// SPDX-License-Identifier: Apache-2.0
// Every differentiable operation against finite differences of itself.
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include "engine/ops/ops.hpp"
#include "kernels/functors.hpp"
#include "tests/support/finite_differences.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using collar::test::check_gradients;
using collar::test::GradientCheck;
using collar::test::OnCpu;

namespace {

using Inputs = std::vector<Tensor>;

// Weighs every element differently, so that a gradient that lands in the wrong place shows.
Tensor weighted_sum(OnCpu& cpu, const Tensor& y) {
  return sum(mul(y, cpu.random(y.shape(), 77)));
}

void require_gradients(const std::string& name,
                       const std::function<Tensor(const Inputs&)>& function, const Inputs& inputs) {
  INFO(name);
  const GradientCheck check = check_gradients(function, inputs);
  INFO(check.failure);
  CHECK(check.failure.empty());
  CHECK(check.compared > 0);
  CHECK(check.kinks <= check.compared / 4);
}

}  // namespace

TEST_CASE("Gradients of convolutions agree with finite differences") {
  OnCpu cpu;
  struct Case {
    Shape x;
    Shape w;
    Conv2dOptions options;
  };
  const std::vector<Case> cases{
      {{2, 3, 5, 6}, {4, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 4, 7, 5}, {6, 2, 3, 2}, {{2, 1}, {1, 0}, {1, 2}, 2}},
      {{2, 16, 4, 3}, {16, 16, 1, 1}, {}},
      {{1, 16, 5, 5}, {16, 16, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 1}},
  };
  for (const Case& c : cases) {
    const auto function = [&](const Inputs& in) {
      return weighted_sum(cpu, conv2d(in[0], in[1], in[2], c.options));
    };
    require_gradients("conv2d " + to_string(c.x) + " " + to_string(c.w), function,
                      {cpu.random(c.x, 1), cpu.random(c.w, 2), cpu.random({c.w[0]}, 3)});
  }
}

TEST_CASE("Gradients of batch normalisation agree with finite differences") {
  OnCpu cpu;
  for (const Shape& shape : {Shape{3, 5, 4, 3}, Shape{2, 16, 3, 3}, Shape{6, 4}}) {
    const Shape channels{shape[1]};
    for (const bool training : {true, false}) {
      for (const bool relu : {false, true}) {
        const auto function = [&](const Inputs& in) {
          BatchNormOptions options;
          options.training = training;
          options.track_statistics = false;
          options.relu = relu;
          options.residual = in[3];
          const BatchNormParameters parameters{
              in[1], in[2], Tensor::zeros(channels, DType::f32, &cpu.context()),
              Tensor::full(channels, 0.5, DType::f32, &cpu.context())};
          return weighted_sum(cpu, batch_norm(in[0], parameters, options));
        };
        require_gradients("batch_norm " + to_string(shape) +
                              (training ? " training" : " evaluation") + (relu ? " relu" : ""),
                          function,
                          {cpu.random(shape, 1), cpu.random(channels, 2), cpu.random(channels, 3),
                           cpu.random(shape, 4)});
      }
    }
  }
}

TEST_CASE("Batch normalisation adds up two upstream gradients itself") {
  OnCpu cpu;
  const Shape shape{2, 16, 3, 3};
  const BatchNormParameters parameters{cpu.random({16}, 2), cpu.random({16}, 3), {}, {}};
  const auto function = [&](const Inputs& in) {
    BatchNormOptions options;
    options.relu = true;
    options.residual = in[1];
    const Tensor y = batch_norm(in[0], parameters, options);
    return add(weighted_sum(cpu, y), sum(mul(y, y)));
  };
  require_gradients("batch_norm used twice", function,
                    {cpu.random(shape, 1), cpu.random(shape, 4)});
}

TEST_CASE("Gradients of pooling agree with finite differences") {
  OnCpu cpu;
  for (const Shape& shape : {Shape{2, 3, 5, 6}, Shape{1, 16, 7, 5}}) {
    const Inputs inputs{cpu.random(shape, 1)};
    const Pool2dOptions stem{{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true};
    const Pool2dOptions shortcut{{2, 2}, {2, 2}, {0, 0}, {1, 1}, true, false};
    require_gradients(
        "max_pool2d", [&](const Inputs& in) { return weighted_sum(cpu, max_pool2d(in[0], stem)); },
        inputs);
    require_gradients(
        "avg_pool2d",
        [&](const Inputs& in) { return weighted_sum(cpu, avg_pool2d(in[0], shortcut)); }, inputs);
    require_gradients(
        "global_avg_pool",
        [&](const Inputs& in) { return weighted_sum(cpu, global_avg_pool(in[0])); }, inputs);
  }
}

TEST_CASE("Gradients of arithmetic agree with finite differences, broadcast or not") {
  OnCpu cpu;
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}}, {{2, 1, 4}, {3, 1}}, {{}, {2, 2}}};
  for (const auto& [a, b] : shapes) {
    const Inputs inputs{cpu.random(a, 1), cpu.random(b, 2)};
    const std::string name = to_string(a) + " and " + to_string(b);
    require_gradients(
        "add " + name, [&](const Inputs& in) { return weighted_sum(cpu, add(in[0], in[1])); },
        inputs);
    require_gradients(
        "sub " + name, [&](const Inputs& in) { return weighted_sum(cpu, sub(in[0], in[1])); },
        inputs);
    require_gradients(
        "mul " + name, [&](const Inputs& in) { return weighted_sum(cpu, mul(in[0], in[1])); },
        inputs);
  }
}

TEST_CASE(
    "Gradients of activations, reductions and changes of shape agree with finite differences") {
  OnCpu cpu;
  const Inputs inputs{cpu.random({3, 4, 5}, 1)};
  require_gradients(
      "relu", [&](const Inputs& in) { return weighted_sum(cpu, relu(in[0])); }, inputs);
  require_gradients(
      "sum",
      [&](const Inputs& in) {
        return weighted_sum(cpu, sum(in[0], {0, 2}));
      },
      inputs);
  require_gradients(
      "mul by a number", [&](const Inputs& in) { return weighted_sum(cpu, mul(in[0], -1.75)); },
      inputs);
  require_gradients(
      "cast",
      [&](const Inputs& in) {
        return weighted_sum(cpu, cast(cast(in[0], DType::f64), DType::f32));
      },
      inputs);
  require_gradients(
      "mean", [&](const Inputs& in) { return weighted_sum(cpu, mean(in[0], {-1}, true)); }, inputs);
  require_gradients(
      "reshape",
      [&](const Inputs& in) {
        return weighted_sum(cpu, reshape(in[0], {2, -1}));
      },
      inputs);
  require_gradients(
      "flatten", [&](const Inputs& in) { return weighted_sum(cpu, flatten(in[0])); }, inputs);
  const DropoutKey key{1, 2, 3, 4, 5};
  require_gradients(
      "dropout", [&](const Inputs& in) { return weighted_sum(cpu, dropout(in[0], 0.4, key)); },
      inputs);
}

TEST_CASE("Gradients of linear layers and losses agree with finite differences") {
  OnCpu cpu;
  require_gradients(
      "linear", [&](const Inputs& in) { return weighted_sum(cpu, linear(in[0], in[1], in[2])); },
      {cpu.random({3, 5}, 1), cpu.random({4, 5}, 2), cpu.random({4}, 3)});
  const Inputs logits{cpu.random({4, 5}, 1)};
  require_gradients(
      "softmax", [&](const Inputs& in) { return weighted_sum(cpu, softmax(in[0])); }, logits);
  require_gradients(
      "log_softmax", [&](const Inputs& in) { return weighted_sum(cpu, log_softmax(in[0])); },
      logits);
  const Tensor target = cpu.labels({1, 0, 4, 2});
  CrossEntropyOptions options;
  options.label_smoothing = 0.1;
  options.weight = cpu.tensor({1, 2, 0.5f, 1, 3}, {5});
  options.ignore_index = 4;
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    options.reduction = reduction;
    require_gradients(
        "cross_entropy",
        [&](const Inputs& in) { return weighted_sum(cpu, cross_entropy(in[0], target, options)); },
        logits);
  }
  const Tensor probabilities = softmax(cpu.random({4, 5}, 2));
  require_gradients(
      "cross_entropy with soft targets",
      [&](const Inputs& in) {
        return weighted_sum(cpu, cross_entropy(in[0], probabilities, options));
      },
      logits);
}

TEST_CASE("Gradients of batch normalisation with an exchange agree with finite differences") {
  OnCpu cpu;
  const Shape shape{3, 16, 2, 3};
  const double other_values = 7;
  // Another rank whose values are constants, with mean 0.3 and variance 0.5.
  StatisticsExchange exchange;
  exchange.merge_moments = [&](View mean, View m2, double count) {
    for (std::int64_t c = 0; c < 16; ++c) {
      double merged_mean = double{mean.as<float>()[c]};
      double merged_m2 = double{m2.as<float>()[c]};
      kernels::MomentsMerge(count, other_values)(merged_mean, merged_m2, 0.3, 0.5 * other_values);
      mean.as<float>()[c] = static_cast<float>(merged_mean);
      m2.as<float>()[c] = static_cast<float>(merged_m2);
    }
    return count + other_values;
  };
  // Its own loss does not depend on what is normalised, so it adds nothing to the sums.
  exchange.add_sums = [&](View, double count) { return count + other_values; };
  const auto function = [&](const Inputs& in) {
    BatchNormOptions options;
    options.exchange = &exchange;
    return weighted_sum(cpu, batch_norm(in[0], {in[1], in[2], {}, {}}, options));
  };
  require_gradients("batch_norm with an exchange", function,
                    {cpu.random(shape, 1), cpu.random({16}, 2), cpu.random({16}, 3)});
}
