// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured: the yardstick for every other speed. A share of the
// peak survives a busy or throttled machine, images per second do not.
#pragma once

#include "kernels/core/dtype.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// GFLOP/s of independent multiply-adds (two operations each) in registers, on the context's
/// threads with its instruction set: the best of several runs of a few milliseconds. bf16 (products
/// of pairs, f32 sums) where the context has it in hardware; any other type is measured as f32.
double measure_peak_gflops(const CpuContext& context, DType dtype = DType::f32);

/// GB/s of a = b + s c over arrays far larger than the caches, on the context's threads: the three
/// arrays' bytes, not counting that most CPUs also read what they are about to overwrite.
double measure_triad_gbs(const CpuContext& context);

}  // namespace collar::kernels
