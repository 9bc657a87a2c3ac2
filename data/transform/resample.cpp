// SPDX-License-Identifier: Apache-2.0
#include "data/transform/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "data/transform/name_table.hpp"
#include "kernels/image.hpp"

namespace collar::data {
namespace {

constexpr NameTable<Interpolation, 6> kNames{
    "interpolation", {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"}};

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double evaluate(Interpolation filter, double x) {
  if (filter == Interpolation::box) return x > -0.5 && x <= 0.5 ? 1 : 0;
  if (filter == Interpolation::lanczos) return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  x = std::abs(x);
  switch (filter) {
    case Interpolation::bilinear:
      return x < 1 ? 1 - x : 0;
    case Interpolation::hamming: {
      if (x == 0) return 1;
      if (x >= 1) return 0;
      x *= std::numbers::pi;
      // Pillow's constants are floats.
      return std::sin(x) / x * (double{0.54f} + double{0.46f} * std::cos(x));
    }
    case Interpolation::bicubic: {
      constexpr double a = -0.5;
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
      return 0;
    }
    default:
      return 0;
  }
}

/// How far the filter reaches, in inputs when it does not shrink.
double radius(Interpolation filter) {
  switch (filter) {
    case Interpolation::box:
      return 0.5;
    case Interpolation::bicubic:
      return 2;
    case Interpolation::lanczos:
      return 3;
    default:
      return 1;
  }
}

std::int32_t to_fixed_point(double weight) {
  const double scaled = weight * (1 << kernels::kWeightBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// Rows that are turned into columns at a time: 21 pixels of 3 bytes fill one cache line but for a
/// byte.
constexpr int kTileRows = 21;
constexpr std::ptrdiff_t kTilePitch = 64;

/// `count` pixels of 3 bytes, each `from_step` and `to_step` bytes after the one before. Writes a
/// fourth byte behind each pixel but the last, and reads it: callers go through pixels in rising
/// order.
void copy_pixels(const std::uint8_t* from, std::ptrdiff_t from_step, std::uint8_t* to,
                 std::ptrdiff_t to_step, int count) {
  for (int i = 0; i + 1 < count; ++i, from += from_step, to += to_step) std::memcpy(to, from, 4);
  std::memcpy(to, from, Image::kChannels);
}

}  // namespace

std::string_view name_of(Interpolation interpolation) {
  return kNames.name(interpolation);
}

Interpolation interpolation_from_name(std::string_view name) {
  return kNames.value(name);
}

AxisWeights make_weights(int input, int output, Interpolation filter) {
  const double scale = static_cast<double>(input) / output;
  const double filter_scale = std::max(scale, 1.0);
  const double support = radius(filter) * filter_scale;
  const double inverse = 1.0 / filter_scale;

  AxisWeights result;
  result.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  result.first.resize(static_cast<std::size_t>(output));
  result.count.resize(static_cast<std::size_t>(output));
  result.weights.resize(static_cast<std::size_t>(output) * static_cast<std::size_t>(result.stride));
  std::vector<double> exact(static_cast<std::size_t>(result.stride));
  for (int i = 0; i < output; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int last = std::min(input, static_cast<int>(centre + support + 0.5));
    double sum = 0;
    for (int j = 0; j < last - first; ++j) {
      const double weight = evaluate(filter, (j + first - centre + 0.5) * inverse);
      exact[static_cast<std::size_t>(j)] = weight;
      sum += weight;
    }
    std::int32_t* row = result.weights.data() + static_cast<std::ptrdiff_t>(i) * result.stride;
    for (int j = 0; j < last - first; ++j) {
      const double weight = exact[static_cast<std::size_t>(j)];
      row[j] = to_fixed_point(sum == 0 ? weight : weight / sum);
    }
    result.first[static_cast<std::size_t>(i)] = first;
    result.count[static_cast<std::size_t>(i)] = last - first;
  }
  return result;
}

Image resample_rows(const ImageView& source, const AxisWeights& weights) {
  const Isa isa = detect_isa();
  Image result({source.size.width, static_cast<int>(weights.first.size())});
  for (int y = 0; y < result.height(); ++y) {
    const auto i = static_cast<std::size_t>(y);
    kernels::weighted_rows(isa, source.row(weights.first[i]), source.stride, weights.row(y),
                           weights.count[i], result.stride(), result.row(y));
  }
  return result;
}

Image resample_columns(const ImageView& source, const AxisWeights& weights) {
  const Isa isa = detect_isa();
  Image result({static_cast<int>(weights.first.size()), source.size.height});
  std::vector<std::uint8_t> columns(static_cast<std::size_t>(source.size.width * kTilePitch));
  std::vector<std::uint8_t> outputs(static_cast<std::size_t>(result.width() * kTilePitch));
  for (int top = 0; top < source.size.height; top += kTileRows) {
    const int rows = std::min(kTileRows, source.size.height - top);
    for (int y = 0; y < rows; ++y) {
      copy_pixels(source.row(top + y), Image::kChannels, columns.data() + y * Image::kChannels,
                  kTilePitch, source.size.width);
    }
    for (int x = 0; x < result.width(); ++x) {
      const auto i = static_cast<std::size_t>(x);
      kernels::weighted_rows(isa, columns.data() + weights.first[i] * kTilePitch, kTilePitch,
                             weights.row(x), weights.count[i], rows * Image::kChannels,
                             outputs.data() + x * kTilePitch);
    }
    for (int y = 0; y < rows; ++y) {
      copy_pixels(outputs.data() + y * Image::kChannels, kTilePitch, result.row(top + y),
                  Image::kChannels, result.width());
    }
  }
  return result;
}

}  // namespace collar::data
