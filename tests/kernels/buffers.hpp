// SPDX-License-Identifier: Apache-2.0
// Tensors for tests of kernels: bytes with a view, filled at random, and a comparison that knows
// what rounding is allowed to do.
#pragma once

#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/core/dispatch.hpp"
#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "tests/support/isas.hpp"

namespace collar::test {

/// A tensor that owns its bytes, at first all zero.
class Buffer {
 public:
  explicit Buffer(const Shape& shape, DType dtype = DType::f32, Layout layout = Layout::plain)
      : bytes_(static_cast<std::size_t>(shape.numel()) * size_of(dtype) + 64),
        view_{align(bytes_.data()), dtype, shape, layout} {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  View view() { return view_; }
  template <typename T = float>
  T* data() {
    return view_.as<T>();
  }

  /// Uniform in [-1, 1), rounded to the type.
  Buffer& randomize(std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    dispatch_float(view_.dtype, [&]<typename T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < view_.numel(); ++i) data<T>()[i] = T(uniform(generator));
    });
    return *this;
  }
  /// The elements of another buffer of this type, from its element `offset` on.
  void copy_from(Buffer& other, std::int64_t offset) {
    std::memcpy(view_.data, other.data<std::byte>() + offset * std::int64_t(size_of(view_.dtype)),
                view_.bytes());
  }

 private:
  static void* align(std::byte* p) {
    return p + (64 - reinterpret_cast<std::uintptr_t>(p) % 64) % 64;
  }

  std::vector<std::byte> bytes_;
  View view_;
};

inline bool same_bits(ConstView a, ConstView b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data, b.data, a.bytes()) == 0;
}
inline bool same_bits(Buffer& a, Buffer& b) {
  return same_bits(a.view(), b.view());
}

inline std::vector<double> values_of(ConstView view) {
  std::vector<double> values(static_cast<std::size_t>(view.numel()));
  dispatch_float(view.dtype, [&]<typename T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = double{static_cast<float>(view.as<T>()[i])};
    }
  });
  return values;
}

/// Requires sums of `terms` products to agree with their exact values. A float sum of n random
/// terms wanders away by about eps sqrt(n) of its own size; 8 of those cover the largest of many
/// elements, and sums of fewer than 256 terms get the allowance of 256 because Winograd's
/// transforms cost a fixed few eps. A bf16 result may also be off by the last bit.
inline void require_close(ConstView result, ConstView exact, double terms) {
  REQUIRE(result.shape == exact.shape);
  const std::vector<double> got = values_of(result);
  const std::vector<double> want = values_of(exact);
  double squares = 0.0;
  for (const double value : want) squares += value * value;
  const double rms = want.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(want.size()));
  const double allowed = 8.0 * 0x1p-23 * std::sqrt(std::max(terms, 256.0)) * rms;
  const double last_bit = result.dtype == DType::bf16  ? 0x1p-7
                          : result.dtype == DType::f16 ? 0x1p-10
                                                       : 0.0;
  std::size_t wrong = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    if (!(error <= allowed + last_bit * std::abs(want[i]))) ++wrong;
    if (!(error <= std::abs(got[worst] - want[worst]))) worst = i;
  }
  INFO("worst of " << got.size() << ": element " << worst << " is "
                   << (got.empty() ? 0.0 : got[worst]) << ", exactly "
                   << (want.empty() ? 0.0 : want[worst]) << "; allowed " << allowed);
  REQUIRE(wrong == 0);
}

}  // namespace collar::test
