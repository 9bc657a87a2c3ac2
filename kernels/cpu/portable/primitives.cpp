// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/primitives.hpp"

namespace collar::kernels {

struct CpuPrimitives::State {};

CpuPrimitives::CpuPrimitives(const CpuContext&) : state_(std::make_unique<State>()) {}
CpuPrimitives::~CpuPrimitives() = default;

std::string CpuPrimitives::description() {
  return "own portable kernels (slow)";
}
int CpuPrimitives::preferred_block(Isa) {
  return 1;
}
std::vector<std::string> CpuPrimitives::implementations() const {
  return {};
}

}  // namespace collar::kernels
