// SPDX-License-Identifier: Apache-2.0
// CpuConvolutions: what the vendor library keeps between calls (engine, stream, primitives by
// shape). Defined once over oneDNN (cpu/onednn/) and once empty (cpu/portable/); CMake links one of
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace collar {
class CpuContext;
}

namespace collar::kernels {

class CpuConvolutions {
 public:
  explicit CpuConvolutions(const CpuContext& context);
  ~CpuConvolutions();
  CpuConvolutions(const CpuConvolutions&) = delete;
  CpuConvolutions& operator=(const CpuConvolutions&) = delete;

  struct State;  // private to the backend's files
  State& state() { return *state_; }

  /// "oneDNN 2.6.3 (Intel AVX-512 …)" or "reference kernels".
  static std::string description();
  /// Implementations chosen so far, one text a primitive; a text with "ref" in it is a slow path.
  std::vector<std::string> implementations() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace collar::kernels
