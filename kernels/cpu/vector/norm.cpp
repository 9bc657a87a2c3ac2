// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of one run of pixels. Sums are formed in float over chunks of kChunk pixels,
// in four interleaved accumulators, and chunks are put together in double. A chunk's deviations are
// taken from its own first pixel: that is one of the values, so the sum of squares exceeds m2 by a
// factor of at most kChunk + 1 whatever the mean, and a constant channel gets exactly its constant
// and 0. No fused multiply-adds: a lane's result is the same on every instruction set.
#include "kernels/cpu/vector/tables.hpp"
#include "kernels/cpu/vector/visit.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kChunk = 64;
constexpr int kChains = 4;

/// A pointer moved on, unless it is null.
template <typename T>
COLLAR_INLINE T* advanced(T* pointer, std::int64_t by) {
  return pointer == nullptr ? nullptr : pointer + by;
}

/// The sum of the chains as an array, so that the loops over lanes that follow vectorise in double.
template <int W>
struct Totals {
  float lane[W];
  COLLAR_INLINE explicit Totals(const Floats<W> (&chain)[kChains]) {
    store<W>(lane, (chain[0] + chain[1]) + (chain[2] + chain[3]));
  }
};

/// Adds pixels of W lanes (channels, or W neighbouring pixels of one channel) to the moments.
template <typename T, int W>
COLLAR_INLINE void add_moments(const T* x, std::int64_t pixels, std::int64_t stride,
                               LaneMoments& moments) {
  for (std::int64_t begin = 0; begin < pixels; begin += kChunk) {
    const std::int64_t n = smaller(kChunk, pixels - begin);
    const T* chunk = x + begin * stride;
    const Floats<W> origin = load<W>(chunk);
    Floats<W> sum[kChains] = {};
    Floats<W> squares[kChains] = {};
    const auto add = [&](std::int64_t pixel, int chain) __attribute__((always_inline)) {
      const Floats<W> d = load<W>(chunk + pixel * stride) - origin;
      sum[chain] += d;
      squares[chain] += d * d;
    };
    std::int64_t i = 0;
    for (; i + kChains <= n; i += kChains) {
      for (int chain = 0; chain < kChains; ++chain) add(i + chain, chain);
    }
    for (; i < n; ++i) add(i, 0);

    float first[W];
    store<W>(first, origin);
    const Totals<W> s(sum);
    const Totals<W> q(squares);
    const auto count = static_cast<double>(n);
    const MomentsMerge merge(moments.count, count);
    for (int lane = 0; lane < W; ++lane) {
      const double offset = double{s.lane[lane]} / count;
      merge(moments.mean[lane], moments.m2[lane], double{first[lane]} + offset,
            double{q.lane[lane]} - offset * double{s.lane[lane]});
    }
    moments.count += count;
  }
}

void moments(const Run& run, const void* x, LaneMoments& out) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    const T* values = static_cast<const T*>(x);
    if (W > 1 || run.pixel_stride > 1)
      return add_moments<T, W>(values, run.pixels, run.pixel_stride, out);

    const std::int64_t vectors = run.pixels / kLanes;
    LaneMoments side_by_side;
    add_moments<T, kLanes>(values, vectors, kLanes, side_by_side);
    for (int lane = 0; vectors > 0 && lane < kLanes; ++lane) {
      const MomentsMerge merge(out.count, side_by_side.count);
      merge(out.mean[0], out.m2[0], side_by_side.mean[lane], side_by_side.m2[lane]);
      out.count += side_by_side.count;
    }
    add_moments<T, 1>(values + vectors * kLanes, run.pixels % kLanes, 1, out);
  });
}

/// One of the per-lane values of a strip, or of a single channel repeated.
template <int W>
COLLAR_INLINE Floats<W> lane_values(const float* values, bool repeated) {
  if (!repeated) return load<W>(values);
  return Floats<W>{} + *values;
}

template <int W, typename T>
COLLAR_INLINE void put(T* to, Floats<W> value, bool non_temporal) {
  if (non_temporal) {
    store_non_temporal<W>(to, value);
  } else {
    store<W>(to, value);
  }
}

template <typename T, int W>
COLLAR_INLINE void normalise_pixels(const Normalise& a, bool one_channel, std::int64_t begin,
                                    std::int64_t pixels, std::int64_t stride) {
  const T* x = static_cast<const T*>(a.x) + begin;
  const T* residual = advanced(static_cast<const T*>(a.residual), begin);
  T* y = static_cast<T*>(a.y) + begin;
  const Floats<W> mean = lane_values<W>(a.mean, one_channel);
  const Floats<W> scale = lane_values<W>(a.scale, one_channel);
  const Floats<W> shift = lane_values<W>(a.shift, one_channel);
  for (std::int64_t i = 0; i < pixels; ++i) {
    Floats<W> z = (load<W>(x + i * stride) - mean) * scale + shift;
    if (residual != nullptr) z += load<W>(residual + i * stride);
    if (a.relu) z = relu_lanes<W>(z);
    put<W>(y + i * stride, z, a.non_temporal);
    if constexpr (W > 1) {
      if (a.mask != nullptr) {
        store_bits<W>(a.mask + i * (stride / 8), passing_bits<W>(rounded_to<T, W>(z)));
      }
    }
  }
  if (a.non_temporal) finish_non_temporal();
}

void normalise(const Run& run, const Normalise& a) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    if (W > 1 || run.pixel_stride > 1) {
      return normalise_pixels<T, W>(a, false, 0, run.pixels, run.pixel_stride);
    }
    const std::int64_t vectors = run.pixels / kLanes;
    normalise_pixels<T, kLanes>(a, true, 0, vectors, kLanes);
    normalise_pixels<T, 1>(a, true, vectors * kLanes, run.pixels % kLanes, 1);
  });
}

/// The upstream gradient of one pixel.
template <typename T, int W>
struct Upstream {
  const T* dy0;
  const T* dy1;
  const std::uint8_t* mask;
  std::int64_t stride;

  COLLAR_INLINE Upstream(const NormGradient& a, std::int64_t begin, std::int64_t pixel_stride)
      : dy0(static_cast<const T*>(a.dy[0]) + begin),
        dy1(advanced(static_cast<const T*>(a.dy[1]), begin)),
        mask(a.mask),
        stride(pixel_stride) {}

  COLLAR_INLINE Floats<W> operator[](std::int64_t pixel) const {
    Floats<W> g = load<W>(dy0 + pixel * stride);
    if (dy1 != nullptr) g = rounded_to<T, W>(g + load<W>(dy1 + pixel * stride));
    if constexpr (W > 1) {
      if (mask != nullptr) g = keep<W>(load_bits<W>(mask + pixel * (stride / 8)), g);
    }
    return g;
  }
};

template <typename T, int W>
COLLAR_INLINE void add_gradient_sums(const NormGradient& a, void* dresidual, bool one_channel,
                                     std::int64_t first, std::int64_t pixels, std::int64_t stride,
                                     LaneGradientSums& sums) {
  const Upstream<T, W> upstream(a, first, stride);
  const T* x = advanced(static_cast<const T*>(a.x), first);
  T* out = advanced(static_cast<T*>(dresidual), first);
  const Floats<W> mean = lane_values<W>(a.mean, one_channel);
  for (std::int64_t begin = 0; begin < pixels; begin += kChunk) {
    const std::int64_t n = smaller(kChunk, pixels - begin);
    Floats<W> sum[kChains] = {};
    Floats<W> products[kChains] = {};
    const auto add = [&](std::int64_t pixel, int chain) __attribute__((always_inline)) {
      const Floats<W> g = upstream[pixel];
      sum[chain] += g;
      if (x != nullptr) products[chain] += g * (load<W>(x + pixel * stride) - mean);
      if (out != nullptr) store<W>(out + pixel * stride, g);
    };
    std::int64_t i = 0;
    for (; i + kChains <= n; i += kChains) {
      for (int chain = 0; chain < kChains; ++chain) add(begin + i + chain, chain);
    }
    for (; i < n; ++i) add(begin + i, 0);

    const Totals<W> g(sum);
    const Totals<W> gx(products);
    for (int lane = 0; lane < W; ++lane) {
      sums.g[lane] += double{g.lane[lane]};
      sums.gx[lane] += double{gx.lane[lane]};
    }
  }
}

void gradient_sums(const Run& run, const NormGradient& a, void* dresidual, LaneGradientSums& out) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    if (W > 1 || run.pixel_stride > 1) {
      return add_gradient_sums<T, W>(a, dresidual, false, 0, run.pixels, run.pixel_stride, out);
    }
    const std::int64_t vectors = run.pixels / kLanes;
    LaneGradientSums side_by_side;
    add_gradient_sums<T, kLanes>(a, dresidual, true, 0, vectors, kLanes, side_by_side);
    for (int lane = 0; lane < kLanes; ++lane) {
      out.g[0] += side_by_side.g[lane];
      out.gx[0] += side_by_side.gx[lane];
    }
    add_gradient_sums<T, 1>(a, dresidual, true, vectors * kLanes, run.pixels % kLanes, 1, out);
  });
}

template <typename T, int W>
COLLAR_INLINE void write_gradient(const NormGradient& a,
                                  const NormGradientCoefficients& coefficients, bool non_temporal,
                                  void* dx, bool one_channel, std::int64_t first,
                                  std::int64_t pixels, std::int64_t stride) {
  const Upstream<T, W> upstream(a, first, stride);
  const T* x = advanced(static_cast<const T*>(a.x), first);
  T* out = static_cast<T*>(dx) + first;
  const Floats<W> mean = lane_values<W>(a.mean, one_channel);
  const Floats<W> mean_g = lane_values<W>(coefficients.mean_g, one_channel);
  const Floats<W> projection = lane_values<W>(coefficients.projection, one_channel);
  const Floats<W> slope = lane_values<W>(coefficients.slope, one_channel);
  for (std::int64_t i = 0; i < pixels; ++i) {
    Floats<W> g = upstream[i] - mean_g;
    if (x != nullptr) g -= (load<W>(x + i * stride) - mean) * projection;
    put<W>(out + i * stride, g * slope, non_temporal);
  }
  if (non_temporal) finish_non_temporal();
}

void gradient(const Run& run, const NormGradient& a, const NormGradientCoefficients& coefficients,
              bool non_temporal, void* dx) {
  visit(run.dtype, run.lanes, [&](auto type, auto lanes) {
    using T = typename decltype(type)::Type;
    constexpr int W = decltype(lanes)::kWidth;
    if (W > 1 || run.pixel_stride > 1) {
      return write_gradient<T, W>(a, coefficients, non_temporal, dx, false, 0, run.pixels,
                                  run.pixel_stride);
    }
    const std::int64_t vectors = run.pixels / kLanes;
    write_gradient<T, kLanes>(a, coefficients, non_temporal, dx, true, 0, vectors, kLanes);
    write_gradient<T, 1>(a, coefficients, non_temporal, dx, true, vectors * kLanes,
                         run.pixels % kLanes, 1);
  });
}

}  // namespace

constinit const NormLoops kNormLoops{moments, normalise, gradient_sums, gradient};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
