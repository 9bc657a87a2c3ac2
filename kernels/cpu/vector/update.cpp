// SPDX-License-Identifier: Apache-2.0
// Optimizer updates over flat ranges, which the compiler vectorises as they stand, and the sum of
// squares of gradients.
#include "kernels/cpu/vector/lanes.hpp"
#include "kernels/cpu/vector/tables.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {
namespace {

void adam(std::int64_t n, float* __restrict parameter, const float* __restrict gradient,
          float* __restrict m, float* __restrict v, const AdamCoefficients& shared) {
  const AdamCoefficients coefficients = shared;
  for (std::int64_t i = 0; i < n; ++i) {
    adam_element(parameter[i], gradient[i], m[i], v[i], coefficients);
  }
}

void sgd(std::int64_t n, float* __restrict parameter, const float* __restrict gradient,
         const SgdCoefficients& shared) {
  const SgdCoefficients coefficients = shared;
  for (std::int64_t i = 0; i < n; ++i) sgd_element(parameter[i], gradient[i], coefficients);
}

void sgd_momentum(std::int64_t n, float* __restrict parameter, const float* __restrict gradient,
                  float* __restrict buffer, bool first, const SgdCoefficients& shared) {
  const SgdCoefficients coefficients = shared;
  for (std::int64_t i = 0; i < n; ++i) {
    sgd_element(parameter[i], gradient[i], buffer[i], first, coefficients);
  }
}

/// Element i goes to sum i mod 16, whatever the width of a register, so every instruction set gives
/// the same bits. (The square of a float is exact in double.)
double sum_of_squares(std::int64_t n, const float* x) {
  constexpr int kSums = 16;
  double sum[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int k = 0; k < kSums; ++k) sum[k] += double{x[i + k]} * double{x[i + k]};
  }
  for (int k = 0; i + k < n; ++k) sum[k] += double{x[i + k]} * double{x[i + k]};
  for (int width = kSums / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) sum[k] += sum[k + width];
  }
  return sum[0];
}

}  // namespace

constinit const UpdateLoops kUpdateLoops{adam, sgd, sgd_momentum, sum_of_squares};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
