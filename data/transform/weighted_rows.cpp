// SPDX-License-Identifier: Apache-2.0
#include "data/transform/weighted_rows.hpp"

#include <algorithm>

#include "kernels/runtime/isa.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace collar::data {
namespace {

constexpr int kPrecision = 22;
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

void weighted_rows_portable(const std::uint8_t* source, std::ptrdiff_t stride,
                            const std::int32_t* weights, int taps, std::uint8_t* out,
                            std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::int32_t sum = kHalf;
    for (int t = 0; t < taps; ++t) sum += source[t * stride + i] * weights[t];
    out[i] = static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
  }
}

#if defined(__x86_64__)

/// kVectors x 8 outputs side by side, their sums in registers.
template <int kVectors>
[[gnu::target("avx2")]] inline void weighted_block_avx2(const std::uint8_t* source,
                                                        std::ptrdiff_t stride,
                                                        const std::int32_t* weights, int taps,
                                                        std::uint8_t* out) {
  __m256i sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_set1_epi32(kHalf);
  for (int t = 0; t < taps; ++t, source += stride) {
    const __m256i weight = _mm256_set1_epi32(weights[t]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadu_si64(source + 8 * v));
      sums[v] = _mm256_add_epi32(sums[v], _mm256_mullo_epi32(bytes, weight));
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    // Both packs saturate, and that is the clamp to 0 … 255.
    const __m256i rounded = _mm256_srai_epi32(sums[v], kPrecision);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si64(out + 8 * v, _mm_packus_epi16(words, words));
  }
}

[[gnu::target("avx2")]] void weighted_rows_avx2(const std::uint8_t* source, std::ptrdiff_t stride,
                                                const std::int32_t* weights, int taps,
                                                std::uint8_t* out, std::ptrdiff_t count) {
  std::ptrdiff_t i = 0;
  for (; i + 64 <= count; i += 64) {
    weighted_block_avx2<8>(source + i, stride, weights, taps, out + i);
  }
  for (; i + 8 <= count; i += 8) {
    weighted_block_avx2<1>(source + i, stride, weights, taps, out + i);
  }
  weighted_rows_portable(source + i, stride, weights, taps, out + i, count - i);
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
