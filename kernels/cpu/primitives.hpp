// SPDX-License-Identifier: Apache-2.0
// CpuPrimitives: what the vendor library keeps between calls of convolutions and matrix products
// (engine, stream, primitives by shape). Defined once over oneDNN (cpu/onednn/) and once empty
// (cpu/portable/); CMake links one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/runtime/isa.hpp"

namespace collar {
class CpuContext;
}

namespace collar::kernels {

class CpuPrimitives {
 public:
  explicit CpuPrimitives(const CpuContext& context);
  ~CpuPrimitives();
  CpuPrimitives(const CpuPrimitives&) = delete;
  CpuPrimitives& operator=(const CpuPrimitives&) = delete;

  struct State;  // private to the backend's files
  State& state() { return *state_; }

  /// "oneDNN 2.6.3 (avx512_core_bf16)" or "own portable kernels (slow)".
  static std::string description();
  /// Channels that lie side by side in the layout this backend is fastest in: 16, 8, or 1 for
  /// plain.
  static int preferred_block(Isa isa);
  /// Implementations chosen so far, one text a primitive; a text with "ref" in it is a slow path.
  std::vector<std::string> implementations() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace collar::kernels
