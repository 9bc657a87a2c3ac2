// SPDX-License-Identifier: Apache-2.0
// What operations of one input have in common: a kernel writes dx from dy, and nothing else has a
// gradient.
#pragma once

#include <source_location>
#include <utility>

#include "engine/autograd/node.hpp"
#include "engine/ops/dispatch.hpp"

namespace collar::ops {

/// Records that y was made from x, if it has to be, and returns y. `backward(device, dy, dx)` runs
/// the kernel that writes dx, in x's layout and type.
template <typename Backward>
Tensor record_unary(const char* op, Tensor y, const Tensor& x, Backward backward,
                    const std::source_location& operation = std::source_location::current()) {
  return autograd::record(
      op, std::move(y), {x},
      [context = x.context(), shape = x.shape(), dtype = x.dtype(), layout = x.layout(),
       backward = std::move(backward), operation](autograd::BackwardCall& call) {
        Tensor dx = Tensor::empty(shape, dtype, context, layout);
        on(
            *context, [&](auto& device) { backward(device, call.dy().view(), dx.view()); },
            operation);
        call.give(0, std::move(dx));
      });
}

}  // namespace collar::ops
