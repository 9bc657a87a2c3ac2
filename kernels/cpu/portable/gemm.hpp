// SPDX-License-Identifier: Apache-2.0
// One blocked matrix product for everything in this folder: C(i, j) = Σ_l A(i, l) B(j, l). The
// operands are functions of (row, l), so that a convolution's patches are gathered while they are
// packed and never stored whole. Sums are f32 in an order that depends on the extents alone, not on
// the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/parallel.hpp"

namespace collar::kernels::portable {

// An operand has `Row row(i)`, `Inner inner(l)` and `float at(Row, Inner)`: the two halves of an
// index are worked out once a tile, only at() runs for each element.

using Vector = float __attribute__((vector_size(16)));
constexpr std::int64_t kLanes = 4;
constexpr std::int64_t kPanelA = 4;           // rows of the micro-kernel
constexpr std::int64_t kPanelB = 2 * kLanes;  // columns of the micro-kernel: 4 x 2 vectors of sums
constexpr std::int64_t kTile = 64;            // rows and columns of C that one thread works on
constexpr std::int64_t kDepth = 256;  // so many l at a time: both packed tiles stay in cache

// A tile of an operand in the order the micro-kernel reads: panels of `Panel` rows, zeros beyond
// the last row.
template <std::int64_t Panel>
struct PackedTile {
  alignas(64) std::array<float, kTile * kDepth> values;

  template <typename Operand, typename Rows>
  void pack(const Operand& operand, const Rows& rows, std::int64_t count, std::int64_t first,
            std::int64_t depth) {
    for (std::int64_t l = 0; l < depth; ++l) {
      const auto inner = operand.inner(first + l);
      for (std::int64_t i = 0; i < kTile; ++i) {
        values[static_cast<std::size_t>((i / Panel * depth + l) * Panel + i % Panel)] =
            i < count ? operand.at(rows[static_cast<std::size_t>(i)], inner) : 0.0F;
      }
    }
  }
  const float* panel(std::int64_t row, std::int64_t depth) const {
    return values.data() + row * depth;
  }
};

inline Vector load_vector(const float* p) {
  Vector vector;
  __builtin_memcpy(&vector, p, sizeof(vector));
  return vector;
}

// c += a bᵀ for two panels. The rows are a pack of indices, so that every sum is a register.
template <std::size_t... i>
void multiply_panels(const float* a, const float* b, std::int64_t depth, float* c,
                     std::index_sequence<i...>) {
  Vector left[sizeof...(i)] = {};
  Vector right[sizeof...(i)] = {};
  for (std::int64_t l = 0; l < depth; ++l, a += kPanelA, b += kPanelB) {
    const Vector b_left = load_vector(b);
    const Vector b_right = load_vector(b + kLanes);
    ((left[i] += a[i] * b_left, right[i] += a[i] * b_right), ...);
  }
  for (std::size_t row = 0; row < kPanelA; ++row) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      c[row * kTile + lane] += left[row][lane];
      c[row * kTile + kLanes + lane] += right[row][lane];
    }
  }
}

/// Calls store(i, j, sum) for every element of the m x n product, from the context's threads.
template <typename A, typename B, typename Store>
void multiply(const CpuContext& context, std::int64_t m, std::int64_t n, std::int64_t k, const A& a,
              const B& b, const Store& store) {
  const std::int64_t tile_rows = (m + kTile - 1) / kTile;
  const std::int64_t tile_columns = (n + kTile - 1) / kTile;
  parallel_for(context, tile_rows * tile_columns, kTile * kTile * k, [&](std::int64_t tile) {
    const std::int64_t i0 = tile % tile_rows * kTile;
    const std::int64_t j0 = tile / tile_rows * kTile;
    const std::int64_t rows = std::min(kTile, m - i0);
    const std::int64_t columns = std::min(kTile, n - j0);
    std::array<decltype(a.row(0)), kTile> a_rows;
    std::array<decltype(b.row(0)), kTile> b_rows;
    for (std::int64_t i = 0; i < rows; ++i) a_rows[static_cast<std::size_t>(i)] = a.row(i0 + i);
    for (std::int64_t j = 0; j < columns; ++j) b_rows[static_cast<std::size_t>(j)] = b.row(j0 + j);

    PackedTile<kPanelA> packed_a;
    PackedTile<kPanelB> packed_b;
    std::array<float, kTile * kTile> c{};
    for (std::int64_t l = 0; l < k; l += kDepth) {
      const std::int64_t depth = std::min(kDepth, k - l);
      packed_a.pack(a, a_rows, rows, l, depth);
      packed_b.pack(b, b_rows, columns, l, depth);
      for (std::int64_t j = 0; j < columns; j += kPanelB)
        for (std::int64_t i = 0; i < rows; i += kPanelA)
          multiply_panels(packed_a.panel(i, depth), packed_b.panel(j, depth), depth,
                          c.data() + i * kTile + j, std::make_index_sequence<kPanelA>{});
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        store(i0 + i, j0 + j, c[static_cast<std::size_t>(i * kTile + j)]);
  });
}

}  // namespace collar::kernels::portable
