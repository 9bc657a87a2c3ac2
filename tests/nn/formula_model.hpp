// SPDX-License-Identifier: Apache-2.0
// The models of golden/models: timm's ResNets with weights that are a formula of their names.
#pragma once

#include <memory>
#include <string>

#include "nn/model_zoo.hpp"
#include "nn/weights.hpp"
#include "tests/support/formula.hpp"

namespace collar::nn::test {

/// Every entry of the model's state by formula. Damped: the last batch norm of each block times
/// 0.25.
inline void load_formula(ResNet& model, bool damped) {
  collar::test::formula::Shapes shapes;
  for (const Parameter& entry : model.state_dict()) shapes[entry.name] = entry.tensor.shape();
  Parameters values;
  for (const auto& [name, shape] : shapes) {
    values.push_back({name, collar::test::formula::entry(name, shapes, damped)});
  }
  load_state(model, values);
}

inline std::unique_ptr<ResNet> formula_model(const std::string& name, std::int64_t classes,
                                             bool damped, DeviceContext& context) {
  auto model = std::make_unique<ResNet>(model_info(name).description, classes);
  load_formula(*model, damped);
  model->to(context);
  return model;
}

}  // namespace collar::nn::test
