// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {

namespace baseline {
extern const Loops kLoops;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Loops kLoops;
}
namespace avx512 {
extern const Loops kLoops;
}
#endif

const Loops& loops_for([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return avx512::kLoops;
  if (isa == Isa::avx2) return avx2::kLoops;
#endif
  return baseline::kLoops;
}

}  // namespace collar::kernels
