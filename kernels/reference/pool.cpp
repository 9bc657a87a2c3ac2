// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/pool.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/core/element.hpp"
#include "kernels/core/image_index.hpp"

namespace collar::kernels::reference {
namespace {

/// body(n, c, h, w) for every element.
template <typename Body>
void for_each(const Shape& shape, const Body& body) {
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t w = 0; w < shape[3]; ++w) body(n, c, h, w);
      }
    }
  }
}

/// body(h, w) for every pixel of x in the window of output (p, q).
template <typename Body>
void for_window(const Shape& x, const Pool2dGeometry& g, std::int64_t p, std::int64_t q,
                const Body& body) {
  for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
    for (std::int64_t s = 0; s < g.kernel[1]; ++s) {
      const std::int64_t h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
      const std::int64_t w = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
      if (h >= 0 && h < x[2] && w >= 0 && w < x[3]) body(h, w);
    }
  }
}

double divisor(const Shape& x, const Pool2dGeometry& g, std::int64_t p, std::int64_t q) {
  std::int64_t cells = 0;
  if (!g.count_include_pad) {
    for_window(x, g, p, q, [&](std::int64_t, std::int64_t) { ++cells; });
    return static_cast<double>(cells);
  }
  for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
    for (std::int64_t s = 0; s < g.kernel[1]; ++s) {
      const bool inside = p * g.stride[0] + r < x[2] + 2 * g.padding[0] &&
                          q * g.stride[1] + s < x[3] + 2 * g.padding[1];
      cells += inside ? 1 : 0;
    }
  }
  return static_cast<double>(cells);
}

void write_all(const View& view, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    write_float(view, static_cast<std::int64_t>(i), static_cast<float>(values[i]));
  }
}

}  // namespace

void max_pool2d_forward(ConstView x, View y, View index, const Pool2dGeometry& geometry) {
  const ImageIndex in(x.shape, x.layout);
  const ImageIndex out(y.shape, y.layout);
  for_each(y.shape, [&](std::int64_t n, std::int64_t c, std::int64_t p, std::int64_t q) {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t winner = -1;
    for_window(x.shape, geometry, p, q, [&](std::int64_t h, std::int64_t w) {
      const float value = read_float(x, in(n, c, h, w));
      const bool first = winner < 0;
      if (first) winner = h * x.shape[3] + w;
      if (value > best || std::isnan(value)) {
        best = value;
        winner = h * x.shape[3] + w;
      }
    });
    write_float(y, out(n, c, p, q), best);
    if (index) index.as<std::int32_t>()[out(n, c, p, q)] = static_cast<std::int32_t>(winner);
  });
}

void max_pool2d_backward(ConstView dy, ConstView index, View dx) {
  const ImageIndex in(dx.shape, dx.layout);
  const ImageIndex out(dy.shape, dy.layout);
  std::vector<double> sums(static_cast<std::size_t>(dx.numel()));
  for_each(dy.shape, [&](std::int64_t n, std::int64_t c, std::int64_t p, std::int64_t q) {
    const std::int64_t winner = index.as<std::int32_t>()[out(n, c, p, q)];
    const std::int64_t i = in(n, c, winner / dx.shape[3], winner % dx.shape[3]);
    sums[static_cast<std::size_t>(i)] += double{read_float(dy, out(n, c, p, q))};
  });
  write_all(dx, sums);
}

void avg_pool2d_forward(ConstView x, View y, const Pool2dGeometry& geometry) {
  const ImageIndex in(x.shape, x.layout);
  const ImageIndex out(y.shape, y.layout);
  for_each(y.shape, [&](std::int64_t n, std::int64_t c, std::int64_t p, std::int64_t q) {
    double sum = 0;
    for_window(x.shape, geometry, p, q, [&](std::int64_t h, std::int64_t w) {
      sum += double{read_float(x, in(n, c, h, w))};
    });
    write_float(y, out(n, c, p, q), static_cast<float>(sum / divisor(x.shape, geometry, p, q)));
  });
}

void avg_pool2d_backward(ConstView dy, View dx, const Pool2dGeometry& geometry) {
  const ImageIndex in(dx.shape, dx.layout);
  const ImageIndex out(dy.shape, dy.layout);
  std::vector<double> sums(static_cast<std::size_t>(dx.numel()));
  for_each(dy.shape, [&](std::int64_t n, std::int64_t c, std::int64_t p, std::int64_t q) {
    const double share =
        double{read_float(dy, out(n, c, p, q))} / divisor(dx.shape, geometry, p, q);
    for_window(dx.shape, geometry, p, q, [&](std::int64_t h, std::int64_t w) {
      sums[static_cast<std::size_t>(in(n, c, h, w))] += share;
    });
  });
  write_all(dx, sums);
}

void global_avg_pool_forward(ConstView x, View y) {
  const ImageIndex in(x.shape, x.layout);
  std::vector<double> sums(static_cast<std::size_t>(y.numel()));
  for_each(x.shape, [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    sums[static_cast<std::size_t>(n * x.shape[1] + c)] += double{read_float(x, in(n, c, h, w))};
  });
  for (double& sum : sums) sum /= static_cast<double>(x.shape[2] * x.shape[3]);
  write_all(y, sums);
}

void global_avg_pool_backward(ConstView dy, View dx) {
  const ImageIndex in(dx.shape, dx.layout);
  const auto pixels = static_cast<double>(dx.shape[2] * dx.shape[3]);
  for_each(dx.shape, [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    const double share = double{read_float(dy, n * dx.shape[1] + c)} / pixels;
    write_float(dx, in(n, c, h, w), static_cast<float>(share));
  });
}

}  // namespace collar::kernels::reference
