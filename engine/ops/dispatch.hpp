// SPDX-License-Identifier: Apache-2.0
// The three lines every operation shares: find the context its inputs live in, run a kernel there,
// complain.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "engine/tensor.hpp"
#include "kernels/core/error.hpp"

namespace collar::ops {

/// The context that all defined inputs are bound to. Throws ShapeError, naming the operation, if
/// one is on the host or elsewhere.
DeviceContext& context_of(const char* op, std::initializer_list<const Tensor*> inputs);

/// Calls `kernel(device)` with the CpuContext or CudaContext inside.
template <typename Kernel>
decltype(auto) on(DeviceContext& context, Kernel&& kernel) {
  return std::visit(std::forward<Kernel>(kernel), context);
}

/// Throws ShapeError("op: message") unless `condition` holds.
template <typename... Args>
void require(bool condition, const char* op, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) {
    throw ShapeError(fmt::format("{}: {}", op, fmt::format(message, std::forward<Args>(args)...)));
  }
}

/// The view of a tensor that may be undefined.
inline ConstView optional_view(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstView{};
}

}  // namespace collar::ops
