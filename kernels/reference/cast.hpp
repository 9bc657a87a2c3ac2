// SPDX-License-Identifier: Apache-2.0
// Rounding to 16-bit floats by arithmetic instead of bits: the oracle of the tests.
#pragma once

namespace collar::kernels::reference {

/// The nearest value of a binary format with `digits` significant bits and exponents
/// lowest_exponent .. highest_exponent (of numbers 1.xxx), ties to even; infinity beyond.
double nearest(double value, int digits, int lowest_exponent, int highest_exponent);

inline double nearest_bfloat16(double value) {
  return nearest(value, 8, -126, 127);
}
inline double nearest_float16(double value) {
  return nearest(value, 11, -14, 15);
}

}  // namespace collar::kernels::reference
