// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/core/element.hpp"

namespace collar::kernels::reference {

void sum_to(ConstView x, View y, double factor) {
  std::vector<double> sums(static_cast<std::size_t>(y.numel()));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t position = 0;
    std::int64_t stride = 1;
    for (int axis = 1; axis <= x.shape.rank(); ++axis) {
      const std::int64_t coordinate = rest % x.shape[-axis];
      rest /= x.shape[-axis];
      if (y.shape[-axis] != 1) position += coordinate * stride;
      stride *= y.shape[-axis];
    }
    sums[static_cast<std::size_t>(position)] += double{read_float(x, i)};
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    write_float(y, static_cast<std::int64_t>(i), static_cast<float>(sums[i] * factor));
  }
}

double squared_norm(ConstView x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) sum += std::pow(double{read_float(x, i)}, 2);
  return sum;
}

void top_k(ConstView x, View index) {
  const std::int64_t columns = x.shape[1];
  const std::int64_t k = index.shape[1];
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(columns));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const float left = read_float(x, row * columns + a);
      const float right = read_float(x, row * columns + b);
      if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && !std::isnan(right);
      return left > right;
    });
    std::copy_n(order.begin(), k, index.as<std::int64_t>() + row * k);
  }
}

}  // namespace collar::kernels::reference
