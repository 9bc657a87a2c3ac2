// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/cast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collar::kernels::reference {

double nearest(double value, int digits, int lowest_exponent, int highest_exponent) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), lowest_exponent);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double rounded = std::nearbyint(value / unit) * unit;
  const double beyond = std::ldexp(1.0, highest_exponent + 1);
  if (std::abs(rounded) < beyond) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace collar::kernels::reference
