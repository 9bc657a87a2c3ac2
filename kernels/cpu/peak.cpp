// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/peak.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace collar::kernels {
namespace {

// Enough independent sums to hide the latency of the arithmetic units, few enough for the
// registers. They are named by a pack of indices, so that each is a register of its own.
using Sums = std::make_index_sequence<12>;
constexpr std::int64_t kRounds = std::int64_t{1} << 20;
constexpr int kRepeats = 10;

// Each loop does kRounds * Sums::size() multiply-adds of a whole vector and returns something that
// depends on all.
struct Method {
  float (*loop)();
  int flops;  // of one multiply-add of a vector
};

template <std::size_t... i>
float multiply_add_portable(std::index_sequence<i...>) {
  using Vector = float __attribute__((vector_size(16)));
  Vector sums[sizeof...(i)] = {};
  const Vector factor{0.5F, 0.5F, 0.5F, 0.5F};
  for (std::int64_t round = 0; round < kRounds; ++round) {
    ((sums[i] = sums[i] * factor + factor), ...);
  }
  return (sums[i][0] + ...);
}

#if defined(__x86_64__)
template <std::size_t... i>
[[gnu::target("avx2,fma")]] float multiply_add_avx2(std::index_sequence<i...>) {
  __m256 sums[sizeof...(i)] = {};
  const __m256 factor = _mm256_set1_ps(0.5F);
  for (std::int64_t round = 0; round < kRounds; ++round) {
    ((sums[i] = _mm256_fmadd_ps(sums[i], factor, factor)), ...);
  }
  return (_mm256_cvtss_f32(sums[i]) + ...);
}

template <std::size_t... i>
[[gnu::target("avx512f")]] float multiply_add_avx512(std::index_sequence<i...>) {
  __m512 sums[sizeof...(i)] = {};
  const __m512 factor = _mm512_set1_ps(0.5F);
  for (std::int64_t round = 0; round < kRounds; ++round) {
    ((sums[i] = _mm512_fmadd_ps(sums[i], factor, factor)), ...);
  }
  return (_mm512_cvtss_f32(sums[i]) + ...);
}

template <std::size_t... i>
[[gnu::target("avx512f,avx512bf16")]] float multiply_add_avx512_bf16(std::index_sequence<i...>) {
  __m512 sums[sizeof...(i)] = {};
  const __m512bh factor = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5F), _mm512_set1_ps(0.25F));
  for (std::int64_t round = 0; round < kRounds; ++round) {
    ((sums[i] = _mm512_dpbf16_ps(sums[i], factor, factor)), ...);
  }
  return (_mm512_cvtss_f32(sums[i]) + ...);
}
#endif

Method method_for(const CpuContext& context, DType dtype) {
#if defined(__x86_64__)
  if (dtype == DType::bf16 && context.has_fast_bf16()) {
    return {[] { return multiply_add_avx512_bf16(Sums{}); }, 64};
  }
  if (context.isa() >= Isa::avx512) return {[] { return multiply_add_avx512(Sums{}); }, 32};
  if (context.isa() == Isa::avx2) return {[] { return multiply_add_avx2(Sums{}); }, 16};
#endif
  static_cast<void>(context);
  static_cast<void>(dtype);
  return {[] { return multiply_add_portable(Sums{}); }, 8};
}

// The shortest time of some runs, in seconds.
template <typename Work>
double best_seconds(const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0.0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

int openmp_threads([[maybe_unused]] const CpuContext& context) {
#ifdef _OPENMP
  return context.threads();
#else
  return 1;
#endif
}

}  // namespace

double measure_peak_gflops(const CpuContext& context, DType dtype) {
  const int threads = openmp_threads(context);
  const Method method = method_for(context, dtype);
  float total = 0.0F;
  const double seconds = best_seconds([&] {
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
    for (int thread = 0; thread < threads; ++thread) total += method.loop();
  });
  // The sums are finite by construction; looking at them keeps the compiler from dropping the
  // loops.
  const double loops = std::isfinite(total) ? threads : 0;
  return loops * static_cast<double>(kRounds) * Sums::size() * method.flops / seconds / 1e9;
}

double measure_triad_gbs(const CpuContext& context) {
  constexpr std::int64_t kCount = std::int64_t{16} << 20;
  [[maybe_unused]] const int threads = openmp_threads(context);
  const auto a = std::make_unique_for_overwrite<float[]>(kCount);
  const auto b = std::make_unique_for_overwrite<float[]>(kCount);
  const auto c = std::make_unique_for_overwrite<float[]>(kCount);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < kCount; ++i) {
    a[i] = 0.0F;
    b[i] = 1.0F;
    c[i] = 2.0F;
  }
  const double seconds = best_seconds([&] {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < kCount; ++i) a[i] = b[i] + 0.5F * c[i];
  });
  return 3.0 * kCount * sizeof(float) / seconds / 1e9;
}

}  // namespace collar::kernels
