// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/optimizer.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernels/core/error.hpp"
#include "nn/optim/adam.hpp"
#include "nn/optim/groups.hpp"
#include "nn/optim/sgd.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

/// Parameters and gradients of some sizes, on their own or in two arenas (with a gap in the
/// gradients' one).
struct Setting {
  explicit Setting(collar::test::OnCpu& on, bool in_arena = false) {
    const std::vector<Shape> shapes{{5, 3}, {7}, {2, 2, 3, 3}};
    gradients = Tensor::zeros({64}, DType::f32, &on.context());
    Tensor homes = Tensor::zeros({64}, DType::f32, &on.context());
    std::int64_t place = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      Tensor tensor = on.leaf(on.random(shapes[i], i));
      if (in_arena) {
        if (i == 2) place += 4;
        const auto in = [&](const Tensor& arena) {
          return arena.slice(place, place + tensor.numel()).viewed_as(shapes[i]);
        };
        tensor.rehome(in(homes));
        tensor.set_grad_storage(in(gradients));
      }
      place += tensor.numel();
      parameters.push_back({"p" + std::to_string(i), tensor});
    }
    set_gradients(on, 100);
  }

  void set_gradients(collar::test::OnCpu& on, std::uint64_t seed) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Tensor& tensor = parameters[i].tensor;
      const Tensor gradient = on.random(tensor.shape(), seed + i);
      if (tensor.grad_storage().defined()) {
        tensor.grad_storage().copy_from(gradient);
      } else {
        tensor.set_grad_storage(gradient);
      }
      tensor.set_grad_valid(true);
    }
  }

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : parameters) {
      all.push_back(parameter.tensor.to_vector<float>());
    }
    return all;
  }

  Parameters parameters;
  Tensor gradients;
};

}  // namespace

TEST_CASE("An update in ranges of an arena is the update of all, whatever the ranges") {
  collar::test::OnCpu on;
  Setting whole(on);
  Setting pieces(on, true);
  AdamW a(whole.parameters, {.lr = 0.1});
  AdamW b(pieces.parameters, {.lr = 0.1});
  b.bind_arena(pieces.gradients);
  for (std::uint64_t step = 0; step < 3; ++step) {
    whole.set_gradients(on, step);
    pieces.set_gradients(on, step);
    a.step();
    b.begin_update();
    for (const auto& [begin, end] :
         std::vector<std::pair<int, int>>{{40, 64}, {0, 1}, {1, 13}, {13, 24}, {24, 40}}) {
      b.update_range(begin, end);
    }
    CHECK(whole.values() == pieces.values());
  }
  a.step();
  b.step();
  CHECK(whole.values() == pieces.values());
}

TEST_CASE("State follows its parameter when the arena is bound later") {
  collar::test::OnCpu on;
  Setting whole(on);
  Setting pieces(on, true);
  SGD a(whole.parameters, {.lr = 0.1, .momentum = 0.9});
  SGD b(pieces.parameters, {.lr = 0.1, .momentum = 0.9});
  a.step();
  b.step();
  b.bind_arena(pieces.gradients);
  CHECK(b.parameters()[0].name == "p0");
  a.step();
  b.begin_update();
  b.update_range(0, 64);
  CHECK(whole.values() == pieces.values());
}

TEST_CASE("A range outside the arena is refused, and so is one without an arena") {
  collar::test::OnCpu on;
  Setting setting(on, true);
  SGD optimizer(setting.parameters);
  CHECK_THROWS_AS(optimizer.update_range(0, 1), UsageError);
  optimizer.bind_arena(setting.gradients);
  CHECK_THROWS_AS(optimizer.update_range(0, 1), UsageError);
  optimizer.begin_update();
  CHECK_THROWS_AS(optimizer.update_range(0, 65), UsageError);
  CHECK_THROWS_AS(optimizer.update_range(5, 4), UsageError);
}

TEST_CASE("Parameters without a gradient keep their value and their step count") {
  collar::test::OnCpu on;
  Setting setting(on);
  setting.parameters[1].tensor.zero_grad();
  const auto before = setting.values();
  AdamW optimizer(setting.parameters, {.lr = 0.1});
  optimizer.step();
  const auto after = setting.values();
  CHECK(after[0] != before[0]);
  CHECK(after[1] == before[1]);
  for (const Parameter& entry : optimizer.state()) {
    if (entry.name == "p0/step") CHECK(entry.tensor.item() == 1);
    if (entry.name == "p1/step") CHECK(entry.tensor.item() == 0);
  }
  optimizer.zero_grad();
  optimizer.step();
  CHECK(setting.values() == after);
}

TEST_CASE("A step counts as a change in place of what it touched") {
  collar::test::OnCpu on;
  Setting setting(on);
  setting.parameters[1].tensor.zero_grad();
  const std::uint64_t first = setting.parameters[0].tensor.version();
  const std::uint64_t second = setting.parameters[1].tensor.version();
  SGD(setting.parameters).step();
  CHECK(setting.parameters[0].tensor.version() > first);
  CHECK(setting.parameters[1].tensor.version() == second);
}

TEST_CASE("State saved and loaded continues bit for bit, in another arrangement too") {
  collar::test::OnCpu on;
  Setting straight(on);
  Setting resumed(on, true);
  AdamW a(straight.parameters, {.lr = 0.1});
  for (std::uint64_t step = 0; step < 4; ++step) {
    straight.set_gradients(on, step);
    a.step();
    if (step == 1) {
      for (std::size_t i = 0; i < 3; ++i) {
        resumed.parameters[i].tensor.copy_from(straight.parameters[i].tensor);
      }
      AdamW b(resumed.parameters, {.lr = 0.1});
      Parameters copies;  // as a file would have them
      for (const Parameter& entry : a.state()) copies.push_back({entry.name, entry.tensor.clone()});
      b.load_state(copies);
      for (std::uint64_t rest = 2; rest < 4; ++rest) {
        resumed.set_gradients(on, rest);
        b.step();
      }
    }
  }
  CHECK(straight.values() == resumed.values());
}

TEST_CASE("A saved state that does not fit is refused with all its faults") {
  collar::test::OnCpu on;
  Setting setting(on);
  AdamW optimizer(setting.parameters);
  optimizer.step();
  Parameters state = optimizer.state();
  std::erase_if(state, [](const Parameter& entry) { return entry.name == "p0/exp_avg"; });
  for (Parameter& entry : state) {
    if (entry.name == "p1/exp_avg_sq") entry.tensor = Tensor::zeros({8});
    if (entry.name == "p2/step") entry.name = "p9/step";
  }
  CHECK_THROWS_WITH(optimizer.load_state(state), Catch::Contains("missing: p0/exp_avg") &&
                                                     Catch::Contains("p1/exp_avg_sq") &&
                                                     Catch::Contains("missing: p2/step") &&
                                                     Catch::Contains("unexpected: p9/step"));
  CHECK_THROWS_AS(optimizer.load_state(state), FileError);
}

TEST_CASE("Parameters have to be some, different, f32 and on a device") {
  collar::test::OnCpu on;
  Setting setting(on);
  CHECK_THROWS_AS(SGD(Parameters{}), UsageError);
  CHECK_THROWS_AS(SGD({setting.parameters[0], setting.parameters[0]}), UsageError);
  CHECK_THROWS_AS(SGD({{"i", Tensor::zeros({2}, DType::i64)}}), ShapeError);

  Tensor host = Tensor::zeros({2});
  host.set_requires_grad(true);
  host.set_grad_storage(Tensor::zeros({2}));
  host.set_grad_valid(true);
  SGD optimizer({{"host", host}});
  CHECK_THROWS_AS(optimizer.step(), UsageError);
}

TEST_CASE("Options outside their range are refused") {
  const Parameters one{{"p", Tensor::zeros({1})}};
  CHECK_THROWS_AS(AdamW(one, {.lr = -1}), UsageError);
  CHECK_THROWS_AS(AdamW(one, {.beta1 = 1}), UsageError);
  CHECK_THROWS_AS(Adam(one, {.beta2 = -0.1}), UsageError);
  CHECK_THROWS_AS(SGD(one, {.weight_decay = -1}), UsageError);
  CHECK_THROWS_AS(SGD(one, {.nesterov = true}), UsageError);
  SGD optimizer(one);
  CHECK_THROWS_AS(optimizer.set_learning_rates({0.1, 0.2}), UsageError);
}

TEST_CASE("Weight decay is for weights, in two groups as timm forms them") {
  const Parameters parameters{{"conv.weight", Tensor::zeros({2, 3, 3, 3})},
                              {"bn.weight", Tensor::zeros({2})},
                              {"bn.bias", Tensor::zeros({2})},
                              {"fc.weight", Tensor::zeros({4, 2})},
                              {"odd.bias", Tensor::zeros({2, 2})}};
  const auto groups = weight_decay_groups(parameters, AdamWOptions{.weight_decay = 0.05});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].options.weight_decay == 0);
  CHECK(groups[0].parameters.size() == 3);
  CHECK(groups[1].options.weight_decay == 0.05);
  CHECK(groups[1].parameters[0].name == "conv.weight");
  CHECK(groups[1].parameters[1].name == "fc.weight");
  CHECK(weight_decay_groups(parameters, SGDOptions{}).size() == 1);
  CHECK(AdamW(groups).group_count() == 2);
}

TEST_CASE("Momentum that begins late, as one cycle sets it, begins with a fresh buffer") {
  collar::test::OnCpu on;
  Setting setting(on);
  Setting expected(on);
  SGD late(setting.parameters, {.lr = 0.1});
  SGD plain(expected.parameters, {.lr = 0.1});
  late.step();
  plain.step();
  late.set_momentum(0.9);
  late.step();
  plain.step();  // the first step with momentum is one without
  CHECK(setting.values() == expected.values());
  late.step();
  plain.step();
  CHECK(setting.values() != expected.values());
}

TEST_CASE("A driver decides what step() and zero_grad() do") {
  collar::test::OnCpu on;
  Setting setting(on);
  SGD optimizer(setting.parameters, {.lr = 0.1});
  const auto before = setting.values();
  bool sync = false;
  optimizer.set_driver({.step =
                            [&](Optimizer& driven) {
                              if (sync) driven.update();
                            },
                        .zero_grad =
                            [&](Optimizer& driven) {
                              if (sync) driven.clear_gradients();
                            }});
  optimizer.step();
  optimizer.zero_grad();
  CHECK(setting.values() == before);
  CHECK(setting.parameters[0].tensor.grad().defined());
  sync = true;
  optimizer.step();
  optimizer.zero_grad();
  CHECK(setting.values() != before);
  CHECK_FALSE(setting.parameters[0].tensor.grad().defined());
}
