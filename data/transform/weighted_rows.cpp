// SPDX-License-Identifier: Apache-2.0
// Written with the compiler's vector types: eight bytes become eight 32-bit sums, and which
// instructions that takes is the compiler's business. The body is inlined into one function an
// instruction set.
#include "data/transform/weighted_rows.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/runtime/isa.hpp"

namespace collar::data {
namespace {

constexpr int kPrecision = 22;
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);
constexpr int kLanes = 8;

using Bytes = std::uint8_t __attribute__((vector_size(kLanes)));
using Words = std::int16_t __attribute__((vector_size(2 * kLanes)));
using Sums = std::int32_t __attribute__((vector_size(4 * kLanes)));

/// kVectors x 8 outputs side by side, their sums in registers.
template <int kVectors>
[[gnu::always_inline]] inline void weighted_block(const std::uint8_t* source, std::ptrdiff_t stride,
                                                  const std::int32_t* weights, int taps,
                                                  std::uint8_t* out) {
  Sums sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = Sums{} + kHalf;
  for (int t = 0; t < taps; ++t, source += stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Bytes bytes;
      std::memcpy(&bytes, source + v * kLanes, sizeof bytes);
      sums[v] += __builtin_convertvector(bytes, Sums) * weights[t];
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Sums rounded = sums[v] >> kPrecision;
    const Sums clamped = rounded < 0 ? Sums{} : rounded > 255 ? Sums{} + 255 : rounded;
    const Bytes bytes = __builtin_convertvector(__builtin_convertvector(clamped, Words), Bytes);
    std::memcpy(out + v * kLanes, &bytes, sizeof bytes);
  }
}

[[gnu::always_inline]] inline void weighted_row(const std::uint8_t* source, std::ptrdiff_t stride,
                                                const std::int32_t* weights, int taps,
                                                std::uint8_t* out, std::ptrdiff_t count) {
  std::ptrdiff_t i = 0;
  for (; i + 8 * kLanes <= count; i += 8 * kLanes) {
    weighted_block<8>(source + i, stride, weights, taps, out + i);
  }
  for (; i + kLanes <= count; i += kLanes) {
    weighted_block<1>(source + i, stride, weights, taps, out + i);
  }
  for (; i < count; ++i) {
    std::int32_t sum = kHalf;
    for (int t = 0; t < taps; ++t) sum += source[t * stride + i] * weights[t];
    out[i] = static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
  }
}

void weighted_rows_portable(const std::uint8_t* source, std::ptrdiff_t stride,
                            const std::int32_t* weights, int taps, std::uint8_t* out,
                            std::ptrdiff_t count) {
  weighted_row(source, stride, weights, taps, out, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void weighted_rows_avx2(const std::uint8_t* source, std::ptrdiff_t stride,
                                                const std::int32_t* weights, int taps,
                                                std::uint8_t* out, std::ptrdiff_t count) {
  weighted_row(source, stride, weights, taps, out, count);
}
#endif

}  // namespace

WeightedRows portable_weighted_rows() {
  return weighted_rows_portable;
}

WeightedRows best_weighted_rows() {
#if defined(__x86_64__)
  if (detect_isa() >= Isa::avx2) return weighted_rows_avx2;
#endif
  return weighted_rows_portable;
}

}  // namespace collar::data
