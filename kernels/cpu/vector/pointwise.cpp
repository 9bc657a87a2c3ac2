// SPDX-License-Identifier: Apache-2.0
// Element by element over flat ranges: whole vectors, then the rest one by one.
#include "kernels/cpu/vector/tables.hpp"
#include "kernels/cpu/vector/visit.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {
namespace {

/// body(first element, LaneCount<kLanes>) for each whole vector, then body(element, LaneCount<1>).
template <typename Body>
COLLAR_INLINE void for_each_vector(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, LaneCount<kLanes>{});
  for (; i < n; ++i) body(i, LaneCount<1>{});
}

/// y[i] = operation(a[i], b[i])
template <typename Operation>
COLLAR_INLINE void map(DType dtype, std::int64_t n, const void* a, const void* b, void* y,
                       const Operation& operation) {
  visit_type(dtype, [&](auto type) {
    using T = typename decltype(type)::Type;
    for_each_vector(n, [&](std::int64_t i, auto lanes) {
      constexpr int W = decltype(lanes)::kWidth;
      store<W>(static_cast<T*>(y) + i, Floats<W>(operation(load<W>(static_cast<const T*>(a) + i),
                                                           load<W>(static_cast<const T*>(b) + i))));
    });
  });
}

void add(DType dtype, std::int64_t n, const void* a, const void* b, void* y) {
  map(dtype, n, a, b, y, [](auto u, auto v) { return u + v; });
}
void subtract(DType dtype, std::int64_t n, const void* a, const void* b, void* y) {
  map(dtype, n, a, b, y, [](auto u, auto v) { return u - v; });
}
void multiply(DType dtype, std::int64_t n, const void* a, const void* b, void* y) {
  map(dtype, n, a, b, y, [](auto u, auto v) { return u * v; });
}
void scale(DType dtype, std::int64_t n, const void* x, void* y, float factor) {
  map(dtype, n, x, x, y, [factor](auto u, auto) { return u * factor; });
}

COLLAR_INLINE void store_bit(std::uint8_t* mask, std::int64_t i, bool bit) {
  const auto flag = static_cast<std::uint8_t>(1u << i % 8);
  mask[i / 8] = static_cast<std::uint8_t>(bit ? mask[i / 8] | flag : mask[i / 8] & ~flag);
}
COLLAR_INLINE bool load_bit(const std::uint8_t* mask, std::int64_t i) {
  return mask[i / 8] >> i % 8 & 1;
}

template <int W>
COLLAR_INLINE void store_passing(std::uint8_t* mask, std::int64_t i, Floats<W> value) {
  if constexpr (W == 1) {
    store_bit(mask, i, relu_passes(value));
  } else {
    store_bits<W>(mask + i / 8, passing_bits<W>(value));
  }
}

template <int W>
COLLAR_INLINE Floats<W> keep_masked(const std::uint8_t* mask, std::int64_t i, Floats<W> value) {
  if constexpr (W == 1) {
    return load_bit(mask, i) ? value : 0.0f;
  } else {
    return keep<W>(load_bits<W>(mask + i / 8), value);
  }
}

void relu(DType dtype, std::int64_t n, const void* x, void* y, std::uint8_t* mask) {
  visit_type(dtype, [&](auto type) {
    using T = typename decltype(type)::Type;
    for_each_vector(n, [&](std::int64_t i, auto lanes) {
      constexpr int W = decltype(lanes)::kWidth;
      const Floats<W> value = relu_lanes<W>(load<W>(static_cast<const T*>(x) + i));
      store<W>(static_cast<T*>(y) + i, value);
      if (mask != nullptr) store_passing<W>(mask, i, value);
    });
  });
}

void passing(DType dtype, std::int64_t n, const void* y, std::uint8_t* mask) {
  visit_type(dtype, [&](auto type) {
    using T = typename decltype(type)::Type;
    for_each_vector(n, [&](std::int64_t i, auto lanes) {
      constexpr int W = decltype(lanes)::kWidth;
      store_passing<W>(mask, i, load<W>(static_cast<const T*>(y) + i));
    });
  });
}

void masked_sum(DType dtype, std::int64_t n, const void* dy0, const void* dy1,
                const std::uint8_t* mask, void* out) {
  visit_type(dtype, [&](auto type) {
    using T = typename decltype(type)::Type;
    for_each_vector(n, [&](std::int64_t i, auto lanes) {
      constexpr int W = decltype(lanes)::kWidth;
      Floats<W> sum = load<W>(static_cast<const T*>(dy0) + i);
      if (dy1 != nullptr) sum += load<W>(static_cast<const T*>(dy1) + i);
      if (mask != nullptr) sum = keep_masked<W>(mask, i, sum);
      store<W>(static_cast<T*>(out) + i, sum);
    });
  });
}

void widen(std::int64_t n, const bfloat16* x, float* y) {
  for_each_vector(n, [&](std::int64_t i, auto lanes) {
    constexpr int W = decltype(lanes)::kWidth;
    store<W>(y + i, load<W>(x + i));
  });
}

void narrow(std::int64_t n, const float* x, bfloat16* y) {
  for_each_vector(n, [&](std::int64_t i, auto lanes) {
    constexpr int W = decltype(lanes)::kWidth;
    store<W>(y + i, load<W>(x + i));
  });
}

}  // namespace

constinit const PointwiseLoops kPointwiseLoops{scale,   add,        subtract, multiply, relu,
                                               passing, masked_sum, widen,    narrow};

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
