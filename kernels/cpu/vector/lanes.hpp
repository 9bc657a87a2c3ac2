// SPDX-License-Identifier: Apache-2.0
// W floats that are worked on together: a vector register where the instruction set has one that
// wide, a plain float for W = 1. GCC's vector types give +, -, *, /, comparisons and ?: lane by
// lane, so loops read like arithmetic; here is what they lack: loads and stores of both element
// types, and the packed bits of the ReLU mask.
//
// Rule of this folder: its files are compiled once for each instruction set, so they call nothing
// from outside that is not always inlined (no std:: functions or containers).
// scripts/check-isa-symbols looks.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.hpp"
#include "kernels/functors.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace collar::kernels::COLLAR_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 8;
#endif

COLLAR_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
COLLAR_INLINE std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

template <int W>
struct VectorOf {
  typedef float Floats __attribute__((vector_size(W * 4)));
  typedef std::int32_t Ints __attribute__((vector_size(W * 4)));
  typedef std::uint32_t Words __attribute__((vector_size(W * 4)));
  typedef std::uint16_t Halves __attribute__((vector_size(W * 2)));
};
template <>
struct VectorOf<1> {
  using Floats = float;
  using Ints = std::int32_t;
  using Words = std::uint32_t;
  using Halves = std::uint16_t;
};
template <int W>
using Floats = typename VectorOf<W>::Floats;
template <int W>
using Ints = typename VectorOf<W>::Ints;

template <int W>
COLLAR_INLINE Floats<W> load(const float* from) {
  Floats<W> value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <int W>
COLLAR_INLINE Floats<W> load(const bfloat16* from) {
  typename VectorOf<W>::Halves halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  using Words = typename VectorOf<W>::Words;
  if constexpr (W == 1) {
    return __builtin_bit_cast(float, static_cast<Words>(halves) << 16);
  } else {
    return __builtin_bit_cast(Floats<W>, __builtin_convertvector(halves, Words) << 16);
  }
}

template <int W>
COLLAR_INLINE Ints<W> load_ints(const std::int32_t* from) {
  Ints<W> value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <int W>
COLLAR_INLINE void store_ints(std::int32_t* to, Ints<W> value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

template <int W>
COLLAR_INLINE void store(float* to, Floats<W> value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

/// A non-temporal store, past the caches, for results too large to be found there by whoever reads
/// them next: it saves fetching the line that is overwritten. `to` is aligned to the size of the
/// vector.
template <int W>
COLLAR_INLINE void store_non_temporal(float* to, Floats<W> value) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_stream_ps(to, value);
#endif
#if defined(__AVX2__)
  if constexpr (W == 8) return _mm256_stream_ps(to, value);
#endif
  store<W>(to, value);
}

/// The bits of the nearest bfloat16, in the lower halves: the rule of dtype_inline.hpp, lane by
/// lane.
template <int W>
COLLAR_INLINE typename VectorOf<W>::Words bfloat16_bits(Floats<W> value) {
  using Words = typename VectorOf<W>::Words;
  const Words bits = __builtin_bit_cast(Words, value);
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return value != value ? (bits >> 16) | 0x40u : rounded;
}

template <int W>
COLLAR_INLINE void store(bfloat16* to, Floats<W> value) {
  using Halves = typename VectorOf<W>::Halves;
  Halves halves;
  if constexpr (W == 1) {
    halves = static_cast<Halves>(bfloat16_bits<W>(value));
  } else {
    halves = __builtin_convertvector(bfloat16_bits<W>(value), Halves);
  }
  __builtin_memcpy(&to->bits, &halves, sizeof(halves));
}

template <int W>
COLLAR_INLINE void store_non_temporal(bfloat16* to, Floats<W> value) {
#if defined(__AVX2__)
  using Halves = typename VectorOf<W>::Halves;
  if constexpr (W == 16) {
    const Halves halves = __builtin_convertvector(bfloat16_bits<W>(value), Halves);
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, halves));
  }
  if constexpr (W == 8) {
    const Halves halves = __builtin_convertvector(bfloat16_bits<W>(value), Halves);
    return _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, halves));
  }
#endif
  store<W>(to, value);
}

/// Orders non-temporal stores before whatever tells other threads that they are done.
COLLAR_INLINE void finish_non_temporal() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

/// The value as an element of type T will hold it.
template <typename T, int W>
COLLAR_INLINE Floats<W> rounded_to(Floats<W> value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    return __builtin_bit_cast(Floats<W>, bfloat16_bits<W>(value) << 16);
  }
}

/// max(x, 0) that keeps NaN and the sign of zero.
template <int W>
COLLAR_INLINE Floats<W> relu_lanes(Floats<W> x) {
  const Floats<W> zero = {};
  return x < zero ? zero : x;
}

// ---- One bit a lane: 16 lanes are two bytes of a mask, 8 are one. Bit i belongs to lane i.

/// Bit i: whether the gradient passes a ReLU whose output was x[i] (relu_passes).
template <int W>
COLLAR_INLINE std::uint32_t passing_bits(Floats<W> x) {
  static_assert(W == 16 || W == 8);
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ);
#endif
#if defined(__AVX2__)
  if constexpr (W == 8) {
    const __m256 passes = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NLE_UQ);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(passes));
  }
#elif defined(__SSE2__)
  __m128 half[2];
  __builtin_memcpy(half, &x, sizeof(half));
  const int low = _mm_movemask_ps(_mm_cmpnle_ps(half[0], _mm_setzero_ps()));
  const int high = _mm_movemask_ps(_mm_cmpnle_ps(half[1], _mm_setzero_ps()));
  return static_cast<std::uint32_t>(low | high << 4);
#endif
  std::uint32_t bits = 0;
  for (int lane = 0; lane < W; ++lane) bits |= std::uint32_t{relu_passes(x[lane])} << lane;
  return bits;
}

/// x where the bit is set, 0 elsewhere.
template <int W>
COLLAR_INLINE Floats<W> keep(std::uint32_t bits, Floats<W> x) {
  static_assert(W == kLanes || W == 8);
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_maskz_mov_ps(static_cast<__mmask16>(bits), x);
#endif
  if constexpr (W == 8) {
    constexpr typename VectorOf<8>::Words kBit = {1, 2, 4, 8, 16, 32, 64, 128};
    const Floats<8> zero = {};
    return (kBit & bits) != 0 ? x : zero;
  }
}

template <int W>
COLLAR_INLINE std::uint32_t load_bits(const std::uint8_t* from) {
  if constexpr (W == 16) return from[0] | std::uint32_t{from[1]} << 8;
  return from[0];
}

template <int W>
COLLAR_INLINE void store_bits(std::uint8_t* to, std::uint32_t bits) {
  to[0] = static_cast<std::uint8_t>(bits);
  if constexpr (W == 16) to[1] = static_cast<std::uint8_t>(bits >> 8);
}

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
