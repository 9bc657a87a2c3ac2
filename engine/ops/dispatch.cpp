// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/dispatch.hpp"

namespace collar::ops {

DeviceContext& context_of(const char* op, std::initializer_list<const Tensor*> inputs) {
  DeviceContext* context = nullptr;
  for (const Tensor* input : inputs) {
    if (!input->defined()) continue;
    require(input->context() != nullptr, op,
            "{} is on the host and bound to no context; move it with to(runtime.context()), or let "
            "Accelerator::prepare "
            "do it",
            describe(*input));
    require(context == nullptr || context == input->context(), op,
            "its inputs are bound to different contexts, among them {}", describe(*input));
    context = input->context();
  }
  require(context != nullptr, op, "no input was given");
  return *context;
}

}  // namespace collar::ops
