// SPDX-License-Identifier: Apache-2.0
// What a training step of a whole network costs besides its arithmetic: conversions of layout, and
// memory taken from the system.
#include <catch2/catch.hpp>
#include <vector>

#include "engine/ops/ops.hpp"
#include "nn/model_zoo.hpp"
#include "nn/optim/adam.hpp"
#include "nn/optim/sgd.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

struct Costs {
  std::uint64_t conversions = 0;
  std::uint64_t converted_bytes = 0;
  std::uint64_t allocations = 0;
};

/// The costs of each of some steps on the same images.
std::vector<Costs> costs_of_steps(ResNet& model, Optimizer& optimizer, collar::test::OnCpu& on,
                                  int steps) {
  const Tensor images = on.random({2, 3, 32, 32}, 1);
  const Tensor labels = on.labels({1, 3});
  std::vector<Costs> costs;
  for (int step = 0; step < steps; ++step) {
    const auto conversions = on.cpu().conversions();
    const auto memory = on.cpu().allocator().statistics();
    cross_entropy(model(images), labels).backward();
    optimizer.step();
    optimizer.zero_grad();
    costs.push_back(
        {on.cpu().conversions().count - conversions.count,
         on.cpu().conversions().bytes - conversions.bytes,
         on.cpu().allocator().statistics().system_allocations - memory.system_allocations});
  }
  return costs;
}

}  // namespace

TEST_CASE("A full training step converts no layout but the input's, and soon allocates nothing") {
  collar::test::OnCpu on;
  for (const auto* name : {"resnet18d", "resnet26"}) {
    INFO(name);
    const auto model = create_model(name, {.num_classes = 5, .seed = 1});
    model->to(on.context());
    SGD optimizer(model->trainable_parameters(), {.lr = 0.01, .momentum = 0.9});
    const auto costs = costs_of_steps(*model, optimizer, on, 5);
    for (const Costs& step : costs) {
      CHECK(step.conversions <= 1);
      CHECK(step.converted_bytes <= 2 * 3 * 32 * 32 * sizeof(float));
    }
    CHECK(costs[3].allocations == 0);
    CHECK(costs[4].allocations == 0);
  }
}

TEST_CASE("A step of a frozen network does not either") {
  collar::test::OnCpu on;
  const auto model = create_model("resnet26d", {.num_classes = 5, .seed = 1});
  model->to(on.context());
  model->freeze_all_but(model->classifier());
  AdamW optimizer(model->trainable_parameters());
  const auto costs = costs_of_steps(*model, optimizer, on, 5);
  for (const Costs& step : costs) CHECK(step.conversions <= 1);
  CHECK(costs[3].allocations == 0);
  CHECK(costs[4].allocations == 0);
}
