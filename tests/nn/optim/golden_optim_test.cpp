// SPDX-License-Identifier: Apache-2.0
// Ten steps of every optimizer against torch's single-tensor path: golden/optim.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/io/safetensors.hpp"
#include "nn/optim/adam.hpp"
#include "nn/optim/sgd.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

/// A group's options: the optimizer's arguments with the group's own on top.
nlohmann::json arguments_of(const nlohmann::json& golden, const nlohmann::json& group) {
  nlohmann::json arguments = golden["arguments"];
  for (const auto& [key, value] : group.items()) {
    if (key != "params") arguments[key] = value;
  }
  return arguments;
}

template <typename Options>
Options adam_options(const nlohmann::json& a) {
  Options options;
  options.lr = a.value("lr", options.lr);
  options.epsilon = a.value("eps", options.epsilon);
  options.weight_decay = a.value("weight_decay", options.weight_decay);
  if (a.contains("betas")) {
    options.beta1 = a["betas"][0];
    options.beta2 = a["betas"][1];
  }
  return options;
}

SGDOptions sgd_options(const nlohmann::json& a) {
  return {.lr = a.value("lr", 1e-3),
          .momentum = a.value("momentum", 0.0),
          .dampening = a.value("dampening", 0.0),
          .weight_decay = a.value("weight_decay", 0.0),
          .nesterov = a.value("nesterov", false)};
}

template <typename Options, typename Convert>
std::vector<ParameterGroup<Options>> groups_of(const nlohmann::json& golden,
                                               const Parameters& parameters,
                                               const Convert& convert) {
  std::vector<ParameterGroup<Options>> groups;
  for (const auto& group : golden["groups"]) {
    ParameterGroup<Options> ours{{}, convert(arguments_of(golden, group))};
    for (const Parameter& parameter : parameters) {
      const auto& names = group["params"];
      if (std::find(names.begin(), names.end(), parameter.name) != names.end()) {
        ours.parameters.push_back(parameter);
      }
    }
    groups.push_back(ours);
  }
  return groups;
}

std::unique_ptr<Optimizer> optimizer_of(const nlohmann::json& golden,
                                        const Parameters& parameters) {
  if (golden["class"] == "AdamW") {
    return std::make_unique<AdamW>(
        groups_of<AdamWOptions>(golden, parameters, adam_options<AdamWOptions>));
  }
  if (golden["class"] == "Adam") {
    return std::make_unique<Adam>(
        groups_of<AdamOptions>(golden, parameters, adam_options<AdamOptions>));
  }
  return std::make_unique<SGD>(groups_of<SGDOptions>(golden, parameters, sgd_options));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = collar::test::values_of(a);
  const auto y = collar::test::values_of(b);
  double largest = x.size() == y.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

}  // namespace

TEST_CASE("SGD is torch's bit for bit, Adam and AdamW to a few times torch's own error") {
  REQUIRE_SHARED(folder, "golden/optim");
  const auto index = collar::test::read_json(folder / "optimizers.json");
  const auto file = SafetensorsFile::open(folder / "optimizers.safetensors");
  collar::test::OnCpu on;
  int compared = 0;
  for (const auto& golden : index["cases"]) {
    const std::string name = golden["name"];
    if (golden["arguments"].contains("amsgrad")) continue;
    INFO(name);
    Parameters parameters;
    for (const auto& [tensor, shape] : index["tensors"].items()) {
      parameters.push_back({tensor, on.leaf(file.tensor("start/" + tensor).to(on.context()))});
    }
    const auto optimizer = optimizer_of(golden, parameters);
    const bool exact = golden["class"] == "SGD";
    const double tolerance = exact ? 0 : 4 * golden["max_error_against_float64"].get<double>();

    for (std::size_t step = 0; step < golden["lr"].size(); ++step) {
      optimizer->set_learning_rates(golden["lr"][step].get<std::vector<double>>());
      for (Parameter& parameter : parameters) {
        const std::string gradient = "g" + std::to_string(step) + "/" + parameter.name;
        parameter.tensor.set_grad_storage(file.tensor(gradient).to(on.context()));
        parameter.tensor.set_grad_valid(true);
      }
      optimizer->step();
      for (const Parameter& parameter : parameters) {
        INFO("step " << step << ", " << parameter.name);
        const Tensor expected =
            file.tensor(name + "/step" + std::to_string(step) + "/" + parameter.name);
        CHECK(largest_difference(parameter.tensor, expected) <= tolerance);
      }
    }
    for (const Parameter& entry : optimizer->state()) {
      const std::string recorded = name + "/state/" + entry.name;
      if (!file.contains(recorded) || entry.name.ends_with("/step")) continue;
      INFO(entry.name);
      CHECK(largest_difference(entry.tensor, file.tensor(recorded)) <= (exact ? 0 : 1e-6));
      ++compared;
    }
  }
  CHECK(compared == 3 * (7 * 2 * 2 + 7));
}

TEST_CASE("AdamW by hand: two steps of three numbers") {
  collar::test::OnCpu on;
  Tensor p = on.leaf(on.tensor({1, -2, 3}, {3}));
  AdamW optimizer({{"p", p}}, {.lr = 0.01, .weight_decay = 0.1});
  const auto step = [&](std::initializer_list<float> gradient) {
    p.set_grad_storage(on.tensor(gradient, {3}));
    p.set_grad_valid(true);
    optimizer.step();
    return p.to_vector<float>();
  };
  const auto near = [](const std::vector<float>& got, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(std::abs(got[i] - expected[i]) <= 0x1p-23f * std::abs(expected[i]));
    }
  };
  near(step({.1f, .2f, -.3f}), {0x1.fa5e36p-1f, -0x1.0106260p+1f, 0x1.80e5600p+1f});
  near(step({.05f, -.1f, .4f}), {0x1.f516c2p-1f, -0x1.011ba0p+1f, 0x1.804370p+1f});
}

TEST_CASE("SGD with Nesterov momentum by hand") {
  collar::test::OnCpu on;
  Tensor p = on.leaf(on.tensor({1, -2, 3}, {3}));
  SGD optimizer({{"p", p}}, {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  const auto step = [&](std::initializer_list<float> gradient) {
    p.set_grad_storage(on.tensor(gradient, {3}));
    p.set_grad_valid(true);
    optimizer.step();
    return p.to_vector<float>();
  };
  CHECK(step({.1f, .2f, -.3f}) == std::vector<float>{0x1.fe0deep-1f, -2, 3});
  CHECK(step({.05f, -.1f, .4f}) ==
        std::vector<float>{0x1.fbc4fcp-1f, -0x1.fe8a72p+0f, 0x1.7e4c30p+1f});
}
