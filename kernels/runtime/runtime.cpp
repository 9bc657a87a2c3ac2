// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/runtime.hpp"

#include <fmt/format.h>

#include "kernels/core/error.hpp"

namespace collar {

Runtime::Runtime(const RuntimeOptions& options)
    : context_(std::in_place_type<CpuContext>, options.cpu) {
  if (options.device.kind != Device::Kind::cpu) {
    throw DeviceError(
        fmt::format("device {}: this build computes on the CPU only", to_string(options.device)));
  }
}

Device Runtime::device() const {
  return device_of(context_);
}

Device device_of(const DeviceContext& context) {
  return std::visit([](const auto& device) { return device.device(); }, context);
}

CachingAllocator& allocator_of(DeviceContext& context) {
  return std::visit([](auto& device) -> CachingAllocator& { return device.allocator(); }, context);
}

}  // namespace collar
