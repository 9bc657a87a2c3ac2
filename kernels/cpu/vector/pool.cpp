// SPDX-License-Identifier: Apache-2.0
// Pooling of one image of a strip, all lanes at once. Backward passes gather: each pixel of dx
// looks for the windows that hold it, in the order in which PyTorch's scatter would come by, so
// every element is written once and sums are formed in float.
#include "kernels/cpu/vector/tables.hpp"
#include "kernels/cpu/vector/visit.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {
namespace {

/// Positions from first to before end.
struct Span {
  std::int64_t first, end;
};

/// The pixels of x along one axis that the window of output `out` covers.
COLLAR_INLINE Span window(const PoolPlane& plane, int axis, std::int64_t out) {
  const std::int64_t extent = axis == 0 ? plane.height : plane.width;
  const std::int64_t dilation = plane.dilation[axis];
  const std::int64_t start = out * plane.stride[axis] - plane.padding[axis];
  const std::int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
  return {start + skipped * dilation, smaller(start + plane.kernel[axis] * dilation, extent)};
}

/// Moves on the span of outputs along one axis whose windows (holes of a dilation included) reach
/// over a pixel, from an earlier pixel's or from {0, 0}.
COLLAR_INLINE void move_outputs(Span& outputs, const PoolPlane& plane, int axis, std::int64_t in) {
  const std::int64_t extent = axis == 0 ? plane.out_height : plane.out_width;
  const std::int64_t stride = plane.stride[axis];
  const std::int64_t reach = (plane.kernel[axis] - 1) * plane.dilation[axis];
  const std::int64_t padded = in + plane.padding[axis];
  while (outputs.first * stride + reach < padded) ++outputs.first;
  while (outputs.end < extent && outputs.end * stride <= padded) ++outputs.end;
}

/// What PyTorch divides by along one axis: the valid pixels, or those of the padded input.
COLLAR_INLINE std::int64_t divisor(const PoolPlane& plane, int axis, std::int64_t out) {
  const std::int64_t extent = axis == 0 ? plane.height : plane.width;
  const std::int64_t padding = plane.padding[axis];
  const std::int64_t start = out * plane.stride[axis] - padding;
  if (plane.count_include_pad) return smaller(start + plane.kernel[axis], extent + padding) - start;
  return smaller(start + plane.kernel[axis], extent) - larger(start, 0);
}

template <int W>
COLLAR_INLINE Ints<W> repeated(std::int64_t value) {
  return Ints<W>{} + static_cast<std::int32_t>(value);
}

template <typename T, int W>
COLLAR_INLINE void max_window(const PoolPlane& plane, Span rows, Span columns, const T* x,
                              Floats<W>& best, Ints<W>& winner) {
  best = Floats<W>{} - __builtin_inff();
  winner = repeated<W>(rows.first * plane.width + columns.first);
  for (std::int64_t h = rows.first; h < rows.end; h += plane.dilation[0]) {
    for (std::int64_t w = columns.first; w < columns.end; w += plane.dilation[1]) {
      const std::int64_t position = h * plane.width + w;
      const Floats<W> value = load<W>(x + position * plane.pixel_stride);
      // PyTorch's rule: the first of equal values stays, the last NaN wins.
      const auto takes = (value > best) | (value != value);
      best = takes ? value : best;
      winner = takes ? repeated<W>(position) : winner;
    }
  }
}

void max_forward(const PoolPlane& plane, const void* x, void* y, std::int32_t* index) {
  visit(plane.dtype, plane.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    for (std::int64_t p = 0; p < plane.out_height; ++p) {
      const Span rows = window(plane, 0, p);
      for (std::int64_t q = 0; q < plane.out_width; ++q) {
        Floats<W> best;
        Ints<W> winner;
        max_window<T, W>(plane, rows, window(plane, 1, q), static_cast<const T*>(x), best, winner);
        const std::int64_t out = (p * plane.out_width + q) * plane.pixel_stride;
        store<W>(static_cast<T*>(y) + out, best);
        if (index != nullptr) store_ints<W>(index + out, winner);
      }
    }
  });
}

void max_backward(const PoolPlane& plane, const void* dy, const std::int32_t* index, void* dx) {
  visit(plane.dtype, plane.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    const Floats<W> zero = {};
    Span rows{0, 0};
    for (std::int64_t h = 0; h < plane.height; ++h) {
      move_outputs(rows, plane, 0, h);
      Span columns{0, 0};
      for (std::int64_t w = 0; w < plane.width; ++w) {
        move_outputs(columns, plane, 1, w);
        const std::int64_t position = h * plane.width + w;
        Floats<W> sum = zero;
        for (std::int64_t p = rows.first; p < rows.end; ++p) {
          for (std::int64_t q = columns.first; q < columns.end; ++q) {
            const std::int64_t out = (p * plane.out_width + q) * plane.pixel_stride;
            const Floats<W> upstream = load<W>(static_cast<const T*>(dy) + out);
            const auto won = load_ints<W>(index + out) == repeated<W>(position);
            sum += won ? upstream : zero;
          }
        }
        store<W>(static_cast<T*>(dx) + position * plane.pixel_stride, sum);
      }
    }
  });
}

void average_forward(const PoolPlane& plane, const void* x, void* y) {
  visit(plane.dtype, plane.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    for (std::int64_t p = 0; p < plane.out_height; ++p) {
      const Span rows = window(plane, 0, p);
      for (std::int64_t q = 0; q < plane.out_width; ++q) {
        const Span columns = window(plane, 1, q);
        Floats<W> sum = {};
        for (std::int64_t h = rows.first; h < rows.end; ++h) {
          for (std::int64_t w = columns.first; w < columns.end; ++w) {
            sum += load<W>(static_cast<const T*>(x) + (h * plane.width + w) * plane.pixel_stride);
          }
        }
        const auto count = static_cast<float>(divisor(plane, 0, p) * divisor(plane, 1, q));
        store<W>(static_cast<T*>(y) + (p * plane.out_width + q) * plane.pixel_stride, sum / count);
      }
    }
  });
}

void average_backward(const PoolPlane& plane, const void* dy, void* dx) {
  visit(plane.dtype, plane.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    Span rows{0, 0};
    for (std::int64_t h = 0; h < plane.height; ++h) {
      move_outputs(rows, plane, 0, h);
      Span columns{0, 0};
      for (std::int64_t w = 0; w < plane.width; ++w) {
        move_outputs(columns, plane, 1, w);
        Floats<W> sum = {};
        for (std::int64_t p = rows.first; p < rows.end; ++p) {
          for (std::int64_t q = columns.first; q < columns.end; ++q) {
            const auto count = static_cast<float>(divisor(plane, 0, p) * divisor(plane, 1, q));
            const std::int64_t out = (p * plane.out_width + q) * plane.pixel_stride;
            sum += load<W>(static_cast<const T*>(dy) + out) / count;
          }
        }
        store<W>(static_cast<T*>(dx) + (h * plane.width + w) * plane.pixel_stride, sum);
      }
    }
  });
}

/// Sums in float over runs of kRun pixels, runs in double.
template <typename T, int W>
COLLAR_INLINE void add_sums(const T* x, std::int64_t pixels, std::int64_t stride, double* sums) {
  constexpr std::int64_t kRun = 64;
  for (std::int64_t begin = 0; begin < pixels; begin += kRun) {
    const std::int64_t end = smaller(begin + kRun, pixels);
    Floats<W> sum = {};
    for (std::int64_t i = begin; i < end; ++i) sum += load<W>(x + i * stride);
    float lane_sum[W];
    store<W>(lane_sum, sum);
    for (int lane = 0; lane < W; ++lane) sums[lane] += double{lane_sum[lane]};
  }
}

void sum(const Run& run, const void* x, double* sums) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    for (int lane = 0; lane < W; ++lane) sums[lane] = 0;
    add_sums<T, W>(static_cast<const T*>(x), run.pixels, run.pixel_stride, sums);
  });
}

void spread(const Run& run, const float* value, void* x) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    const Floats<W> values = load<W>(value);
    for (std::int64_t i = 0; i < run.pixels; ++i) {
      store<W>(static_cast<T*>(x) + i * run.pixel_stride, values);
    }
  });
}

}  // namespace

constinit const PoolLoops kPoolLoops{max_forward,      max_backward, average_forward,
                                     average_backward, sum,          spread};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
