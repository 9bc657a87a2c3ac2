// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "kernels/core/element.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {
namespace {

/// An axis of x: its extent and the distance of neighbours.
struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

/// At most eight axes, the innermost last.
struct Axes {
  std::array<Axis, Shape::kMaxRank> axis{};
  int count = 0;

  void push_front(Axis added) {
    // Neighbours that can be walked as one are one.
    if (count > 0 && added.stride == axis[0].extent * axis[0].stride) {
      axis[0].extent *= added.extent;
      return;
    }
    std::copy_backward(axis.begin(), axis.begin() + count, axis.begin() + count + 1);
    axis[0] = added;
    ++count;
  }
  std::int64_t numel() const {
    std::int64_t product = 1;
    for (int i = 0; i < count; ++i) product *= axis[static_cast<std::size_t>(i)].extent;
    return product;
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t sum = 0;
    for (int i = count - 1; i >= 0; --i) {
      const Axis& a = axis[static_cast<std::size_t>(i)];
      sum += index % a.extent * a.stride;
      index /= a.extent;
    }
    return sum;
  }
};

/// NaN is the largest; columns that compare equal keep their order.
bool ranks_before(float a, std::int64_t a_column, float b, std::int64_t b_column) {
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a != b) return a > b;
  return a_column < b_column;
}

}  // namespace

void sum_to(CpuContext& context, ConstView x, View y, double factor) {
  Axes summed;
  Axes kept;
  std::int64_t stride = 1;
  for (int i = x.shape.rank() - 1; i >= 0; --i) {
    const std::int64_t extent = x.shape[i];
    if (extent != 1) (y.shape[i] == 1 ? summed : kept).push_front({extent, stride});
    stride *= extent;
  }
  const std::int64_t terms = summed.numel();
  const Axis inner =
      summed.count > 0 ? summed.axis[static_cast<std::size_t>(summed.count - 1)] : Axis{1, 1};
  parallel_for(context, y.numel(), terms, [&](std::int64_t out) {
    const std::int64_t begin = kept.offset(out);
    double sum = 0;
    for (std::int64_t first = 0; first < terms; first += inner.extent) {
      const std::int64_t row = begin + summed.offset(first);
      for (std::int64_t i = 0; i < inner.extent; ++i) {
        sum += double{read_float(x, row + i * inner.stride)};
      }
    }
    write_float(y, out, static_cast<float>(sum * factor));
  });
}

double squared_norm(CpuContext& context, ConstView x) {
  const std::int64_t n = x.numel();
  const std::int64_t blocks = (n + kNormBlock - 1) / kNormBlock;
  const UpdateLoops& loops = loops_for(context.isa()).update;
  Scratch<double> partial(context, blocks);
  parallel_for(context, blocks, kNormBlock, [&](std::int64_t block) {
    const std::int64_t begin = block * kNormBlock;
    partial[block] = loops.sum_of_squares(std::min(kNormBlock, n - begin), x.as<float>() + begin);
  });
  double sum = 0;
  for (std::int64_t block = 0; block < blocks; ++block) sum += partial[block];
  return sum;
}

void top_k(CpuContext& context, ConstView x, View index) {
  const std::int64_t columns = x.shape[1];
  const std::int64_t k = index.shape[1];
  Scratch<std::int64_t> order(context, x.numel());
  parallel_for(context, x.shape[0], columns * 8, [&](std::int64_t row) {
    std::int64_t* first = order.data() + row * columns;
    std::iota(first, first + columns, std::int64_t{0});
    const std::int64_t begin = row * columns;
    std::partial_sort(first, first + k, first + columns, [&](std::int64_t a, std::int64_t b) {
      return ranks_before(read_float(x, begin + a), a, read_float(x, begin + b), b);
    });
    std::copy_n(first, k, index.as<std::int64_t>() + row * k);
  });
}

}  // namespace collar::kernels
