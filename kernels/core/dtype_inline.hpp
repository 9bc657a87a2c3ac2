// SPDX-License-Identifier: Apache-2.0
// The conversions of dtype.hpp, always inlined (inline.hpp says why; std::bit_cast is not, hence
// the builtin).
#pragma once

#include "kernels/core/dtype.hpp"
#include "kernels/core/inline.hpp"

namespace collar {

COLLAR_INLINE bfloat16::bfloat16(float value) {
  const auto u = __builtin_bit_cast(std::uint32_t, value);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40u : rounded);
}

COLLAR_INLINE bfloat16::operator float() const {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

COLLAR_INLINE float16::float16(float value) {
  const auto u = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN
    bits = static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    bits = static_cast<std::uint16_t>(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // subnormal: let the float adder round at 2^-24
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    bits = static_cast<std::uint16_t>(sign |
                                      (__builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000u));
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    bits = static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
}

COLLAR_INLINE float16::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) return __builtin_bit_cast(float, sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return __builtin_bit_cast(float, sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(std::uint32_t, subnormal));
}

}  // namespace collar
