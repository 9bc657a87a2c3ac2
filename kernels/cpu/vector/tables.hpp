// SPDX-License-Identifier: Apache-2.0
// Each family's part of the table of loops.hpp, for the instruction set this file is being compiled
// for.
#pragma once

#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {

extern const NormLoops kNormLoops;
extern const PoolLoops kPoolLoops;
extern const PointwiseLoops kPointwiseLoops;
extern const UpdateLoops kUpdateLoops;
extern const ImageLoops kImageLoops;
extern const Loops kLoops;

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
