// SPDX-License-Identifier: Apache-2.0
// Device: which kind of processor, and which one of its kind.
#pragma once

#include <cstdint>
#include <string>

namespace collar {

struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };

  Kind kind = Kind::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda:0"
inline std::string to_string(Device device) {
  return device.kind == Device::Kind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace collar
