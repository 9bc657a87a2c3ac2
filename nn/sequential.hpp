// SPDX-License-Identifier: Apache-2.0
// Modules one after the other, named "0", "1", "2", …
#pragma once

#include "nn/module.hpp"

namespace collar::nn {

class Sequential final : public Module {
 public:
  /// Constructs the next module at the end and returns it.
  template <typename Child, typename... Args>
  Child& append(Args&&... args) {
    return add<Child>(std::to_string(size()), std::forward<Args>(args)...);
  }
  std::size_t size() const { return children().size(); }

  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& child : children()) y = (*child.module)(y);
    return y;
  }
};

}  // namespace collar::nn
