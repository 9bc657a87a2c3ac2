// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/conv.hpp"

#include <vector>

#include "kernels/core/dispatch.hpp"
#include "kernels/core/image_index.hpp"

namespace collar::kernels::reference {
namespace {

// The extents by their usual names, and which input pixel an output pixel meets at a tap of the
// kernel.
struct Problem {
  Problem(const Shape& x, const Shape& w, const Shape& y, const Conv2dGeometry& g)
      : geometry(g),
        N(x[0]),
        C(x[1]),
        H(x[2]),
        W(x[3]),
        K(w[0]),
        c_per_group(w[1]),
        R(w[2]),
        S(w[3]),
        P(y[2]),
        Q(y[3]),
        k_per_group(w[0] / g.groups) {}

  std::int64_t row(std::int64_t p, std::int64_t r) const {
    return p * geometry.stride[0] - geometry.padding[0] + r * geometry.dilation[0];
  }
  std::int64_t column(std::int64_t q, std::int64_t s) const {
    return q * geometry.stride[1] - geometry.padding[1] + s * geometry.dilation[1];
  }
  bool inside(std::int64_t h, std::int64_t w) const { return h >= 0 && h < H && w >= 0 && w < W; }
  std::int64_t weight(std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) const {
    return ((k * c_per_group + c) * R + r) * S + s;
  }

  const Conv2dGeometry& geometry;
  std::int64_t N, C, H, W, K, c_per_group, R, S, P, Q, k_per_group;
};

template <typename T>
double value(const void* data, std::int64_t i) {
  return static_cast<double>(static_cast<float>(static_cast<const T*>(data)[i]));
}

// A weight in the type that products are formed in.
template <typename T>
double weight(ConstView w, std::int64_t i) {
  return static_cast<double>(static_cast<float>(T(w.as<float>()[i])));
}

template <typename T>
void forward(ConstView x, ConstView w, ConstView bias, View y, const Conv2dGeometry& geometry) {
  const Problem at(x.shape, w.shape, y.shape, geometry);
  const ImageIndex x_at(x.shape, x.layout);
  const ImageIndex y_at(y.shape, y.layout);
  for (std::int64_t n = 0; n < at.N; ++n)
    for (std::int64_t k = 0; k < at.K; ++k)
      for (std::int64_t p = 0; p < at.P; ++p)
        for (std::int64_t q = 0; q < at.Q; ++q) {
          const std::int64_t first_channel = k / at.k_per_group * at.c_per_group;
          double sum = bias ? value<float>(bias.data, k) : 0.0;
          for (std::int64_t c = 0; c < at.c_per_group; ++c)
            for (std::int64_t r = 0; r < at.R; ++r)
              for (std::int64_t s = 0; s < at.S; ++s) {
                const std::int64_t h = at.row(p, r);
                const std::int64_t v = at.column(q, s);
                if (!at.inside(h, v)) continue;
                sum += value<T>(x.data, x_at(n, first_channel + c, h, v)) *
                       weight<T>(w, at.weight(k, c, r, s));
              }
          y.as<T>()[y_at(n, k, p, q)] = T(static_cast<float>(sum));
        }
}

// Each output gradient is handed back along the products it came from.
template <typename T>
void backward_data(ConstView dy, ConstView w, View dx, const Conv2dGeometry& geometry) {
  const Problem at(dx.shape, w.shape, dy.shape, geometry);
  const ImageIndex x_at(dx.shape, dx.layout);
  const ImageIndex y_at(dy.shape, dy.layout);
  std::vector<double> sums(static_cast<std::size_t>(dx.numel()));
  for (std::int64_t n = 0; n < at.N; ++n)
    for (std::int64_t k = 0; k < at.K; ++k)
      for (std::int64_t p = 0; p < at.P; ++p)
        for (std::int64_t q = 0; q < at.Q; ++q) {
          const std::int64_t first_channel = k / at.k_per_group * at.c_per_group;
          const double gradient = value<T>(dy.data, y_at(n, k, p, q));
          for (std::int64_t c = 0; c < at.c_per_group; ++c)
            for (std::int64_t r = 0; r < at.R; ++r)
              for (std::int64_t s = 0; s < at.S; ++s) {
                const std::int64_t h = at.row(p, r);
                const std::int64_t v = at.column(q, s);
                if (!at.inside(h, v)) continue;
                sums[static_cast<std::size_t>(x_at(n, first_channel + c, h, v))] +=
                    gradient * weight<T>(w, at.weight(k, c, r, s));
              }
        }
  for (std::size_t i = 0; i < sums.size(); ++i) dx.as<T>()[i] = T(static_cast<float>(sums[i]));
}

void store(View gradient, std::int64_t i, double sum, bool accumulate) {
  float& target = gradient.as<float>()[i];
  target = static_cast<float>(accumulate ? static_cast<double>(target) + sum : sum);
}

template <typename T>
void backward_weights(ConstView x, ConstView dy, View dw, bool accumulate,
                      const Conv2dGeometry& geometry) {
  const Problem at(x.shape, dw.shape, dy.shape, geometry);
  const ImageIndex x_at(x.shape, x.layout);
  const ImageIndex y_at(dy.shape, dy.layout);
  for (std::int64_t k = 0; k < at.K; ++k) {
    const std::int64_t first_channel = k / at.k_per_group * at.c_per_group;
    for (std::int64_t c = 0; c < at.c_per_group; ++c)
      for (std::int64_t r = 0; r < at.R; ++r)
        for (std::int64_t s = 0; s < at.S; ++s) {
          double sum = 0.0;
          for (std::int64_t n = 0; n < at.N; ++n)
            for (std::int64_t p = 0; p < at.P; ++p)
              for (std::int64_t q = 0; q < at.Q; ++q) {
                const std::int64_t h = at.row(p, r);
                const std::int64_t v = at.column(q, s);
                if (!at.inside(h, v)) continue;
                sum += value<T>(x.data, x_at(n, first_channel + c, h, v)) *
                       value<T>(dy.data, y_at(n, k, p, q));
              }
          store(dw, at.weight(k, c, r, s), sum, accumulate);
        }
  }
}

template <typename T>
void backward_bias(ConstView dy, View dbias, bool accumulate) {
  const ImageIndex at(dy.shape, dy.layout);
  for (std::int64_t k = 0; k < dy.shape[1]; ++k) {
    double sum = 0.0;
    for (std::int64_t n = 0; n < dy.shape[0]; ++n)
      for (std::int64_t p = 0; p < dy.shape[2]; ++p)
        for (std::int64_t q = 0; q < dy.shape[3]; ++q) sum += value<T>(dy.data, at(n, k, p, q));
    store(dbias, k, sum, accumulate);
  }
}

}  // namespace

void conv2d_forward(ConstView x, ConstView w, ConstView bias, View y,
                    const Conv2dGeometry& geometry) {
  dispatch_float(x.dtype,
                 [&]<typename T>(std::type_identity<T>) { forward<T>(x, w, bias, y, geometry); });
}

void conv2d_backward_data(ConstView dy, ConstView w, View dx, const Conv2dGeometry& geometry) {
  dispatch_float(dy.dtype,
                 [&]<typename T>(std::type_identity<T>) { backward_data<T>(dy, w, dx, geometry); });
}

void conv2d_backward_weights(ConstView x, ConstView dy, View dw, View dbias, bool accumulate,
                             const Conv2dGeometry& geometry) {
  dispatch_float(dy.dtype, [&]<typename T>(std::type_identity<T>) {
    if (dw) backward_weights<T>(x, dy, dw, accumulate, geometry);
    if (dbias) backward_bias<T>(dy, dbias, accumulate);
  });
}

}  // namespace collar::kernels::reference
