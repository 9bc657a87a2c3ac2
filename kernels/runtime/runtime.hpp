// SPDX-License-Identifier: Apache-2.0
// Runtime owns the context of the one device a process computes on. It is made in main (or by the
// Accelerator) and torn down in a fixed order. A tensor may outlive it, with its memory, but no
// operation runs on it any more.
#pragma once

#include <variant>

#include "kernels/core/device.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar {

/// One alternative a device kind this build knows. Ops visit it once and call the kernel overload
/// for the context they find; a kernel that a backend lacks does not compile.
using DeviceContext = std::variant<CpuContext>;

struct RuntimeOptions {
  Device device;
  CpuOptions cpu;
};

class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  DeviceContext& context() { return context_; }
  Device device() const;

 private:
  DeviceContext context_;
};

Device device_of(const DeviceContext& context);
CachingAllocator& allocator_of(DeviceContext& context);

}  // namespace collar
