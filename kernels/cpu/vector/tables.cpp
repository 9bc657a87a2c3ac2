// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/vector/tables.hpp"

#include "kernels/cpu/vector/lanes.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {

// Constant-initialised: nothing of another instruction set may run when the program starts.
constinit const Loops kLoops{kLanes,          kNormLoops,   kPoolLoops,
                             kPointwiseLoops, kUpdateLoops, kImageLoops};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
