// SPDX-License-Identifier: Apache-2.0
// The three lines every operation shares: find the context its inputs live in, run a kernel there,
// complain.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <source_location>
#include <utility>

#include "engine/tensor.hpp"
#include "kernels/core/error.hpp"

namespace collar::ops {

/// The context that all defined inputs are bound to. Throws ShapeError, naming the operation, if
/// one is on the host or elsewhere.
DeviceContext& context_of(const char* op, std::initializer_list<const Tensor*> inputs);

/// Calls `kernel(device)` with the CpuContext or CudaContext inside. A context that is being
/// measured counts the time under the name of the file the operation is written in.
template <typename Kernel>
decltype(auto) on(DeviceContext& context, const Kernel& kernel,
                  const std::source_location& operation = std::source_location::current()) {
  return std::visit(
      [&](auto& device) -> decltype(auto) {
        const KernelTimes::Call call(device.kernel_times(), operation.file_name());
        return kernel(device);
      },
      context);
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
