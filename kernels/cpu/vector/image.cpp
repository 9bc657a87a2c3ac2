// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows of bytes, in 32-bit integers.
#include "kernels/image.hpp"
#include "kernels/cpu/vector/lanes.hpp"
#include "kernels/cpu/vector/tables.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {
namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

void weighted_bytes(const std::uint8_t* rows, std::int64_t stride, const std::int32_t* weights,
                    int taps, std::int64_t n, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t sum = kHalf;
    for (int t = 0; t < taps; ++t) sum += rows[t * stride + i] * weights[t];
    const std::int32_t rounded = sum >> kWeightBits;
    out[i] = static_cast<std::uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
  }
}

#if defined(__AVX2__)

/// kVectors x 8 outputs side by side, their sums in registers.
template <int kVectors>
COLLAR_INLINE void weighted_block(const std::uint8_t* rows, std::int64_t stride,
                                  const std::int32_t* weights, int taps, std::uint8_t* out) {
  __m256i sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_set1_epi32(kHalf);
  for (int t = 0; t < taps; ++t, rows += stride) {
    const __m256i weight = _mm256_set1_epi32(weights[t]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadu_si64(rows + 8 * v));
      sums[v] = _mm256_add_epi32(sums[v], _mm256_mullo_epi32(bytes, weight));
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    // Both packs saturate, and that is the clamp to 0 … 255.
    const __m256i rounded = _mm256_srai_epi32(sums[v], kWeightBits);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si64(out + 8 * v, _mm_packus_epi16(words, words));
  }
}

void weighted_rows(const std::uint8_t* rows, std::int64_t stride, const std::int32_t* weights,
                   int taps, std::int64_t n, std::uint8_t* out) {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) weighted_block<8>(rows + i, stride, weights, taps, out + i);
  for (; i + 8 <= n; i += 8) weighted_block<1>(rows + i, stride, weights, taps, out + i);
  weighted_bytes(rows + i, stride, weights, taps, n - i, out + i);
}

#else

constexpr auto weighted_rows = weighted_bytes;

#endif

}  // namespace

constinit const ImageLoops kImageLoops{weighted_rows};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
