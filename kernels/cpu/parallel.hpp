// SPDX-License-Identifier: Apache-2.0
// The two ways in which CPU kernels use threads. Every item is one thread's work from beginning to
// end, so results do not depend on the number of threads. Small work stays on the calling thread:
// waking a team takes microseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// Elements below which a parallel region costs more than it gains.
inline constexpr std::int64_t kParallelElements = 1 << 15;

/// body(i) for i in [0, items), each worth about `elements_per_item` element operations. The body
/// must not throw.
template <typename Body>
void parallel_for(const CpuContext& context, std::int64_t items, std::int64_t elements_per_item,
                  const Body& body) {
  // The team's size never varies: libgomp would rebuild it.
  [[maybe_unused]] const int threads = context.threads();
  [[maybe_unused]] const bool worthwhile =
      threads > 1 && items > 1 && items * elements_per_item >= kParallelElements;
#pragma omp parallel for num_threads(threads) schedule(static) if (worthwhile)
  for (std::int64_t i = 0; i < items; ++i) body(i);
}

/// body(begin, end) over disjoint ranges that cover [0, n); each begins at a multiple of 64, so bit
/// masks of ranges have whole bytes and outputs do not share cache lines.
template <typename Body>
void parallel_ranges(const CpuContext& context, std::int64_t n, const Body& body) {
  constexpr std::int64_t kAlign = 64;
  const std::int64_t parts = n >= kParallelElements ? context.threads() : 1;
  const std::int64_t share = (n + parts * kAlign - 1) / (parts * kAlign) * kAlign;
  parallel_for(context, parts, share, [&](std::int64_t part) {
    const std::int64_t begin = std::min(n, part * share);
    const std::int64_t end = std::min(n, begin + share);
    if (begin < end) body(begin, end);
  });
}

}  // namespace collar::kernels
