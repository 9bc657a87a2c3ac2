// SPDX-License-Identifier: Apache-2.0
// The instruction sets that tests try.
#pragma once

#include <vector>

#include "kernels/runtime/isa.hpp"

namespace collar::test {

/// Every level this CPU has, up to COLLAR_ISA if that is set.
inline std::vector<Isa> isas_here() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (isa <= detect_isa()) isas.push_back(isa);
  }
  return isas;
}

}  // namespace collar::test
