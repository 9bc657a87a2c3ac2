// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/convolutions.hpp"

namespace collar::kernels {

struct CpuConvolutions::State {};

CpuConvolutions::CpuConvolutions(const CpuContext&) : state_(std::make_unique<State>()) {}
CpuConvolutions::~CpuConvolutions() = default;

std::string CpuConvolutions::description() {
  return "own portable kernels (slow)";
}
int CpuConvolutions::preferred_block(Isa) {
  return 1;
}
std::vector<std::string> CpuConvolutions::implementations() const {
  return {};
}

}  // namespace collar::kernels
