// SPDX-License-Identifier: Apache-2.0
// Canvas: a picture being painted, shape over shape with smooth edges, and its pixels at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/synth/shapes.hpp"

namespace collar::apps::synth {

/// Red, green and blue from 0 to 255; values outside are allowed until the end.
struct Color {
  double red = 0;
  double green = 0;
  double blue = 0;
};

inline Color operator*(Color color, double factor) {
  return {color.red * factor, color.green * factor, color.blue * factor};
}
inline Color mix(Color a, Color b, double share) {
  return {mix(a.red, b.red, share), mix(a.green, b.green, share), mix(a.blue, b.blue, share)};
}
/// 0 for black, 255 for white.
inline double luminance(Color color) {
  return 0.299 * color.red + 0.587 * color.green + 0.114 * color.blue;
}

/// A picture as files store it: rows of red, green, blue.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;
};

class Canvas {
 public:
  /// Black. Throws UsageError unless both sides are 1 to 4096.
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  Color& at(int x, int y) { return pixels_[static_cast<std::size_t>(y) * stride() + column(x)]; }
  const Color& at(int x, int y) const {
    return pixels_[static_cast<std::size_t>(y) * stride() + column(x)];
  }

  /// color(Point pixel) everywhere.
  template <class ColorAt>
  void fill(ColorAt&& color);

  /// Paints the shape `distance(Point local)` (local units, negative inside) with `color(Point
  /// local, double distance)`. Nothing outside the circle (center, reach) of local units is
  /// touched.
  template <class Distance, class ColorAt>
  void paint(const Frame& frame, Point center, double reach, Distance&& distance, ColorAt&& color,
             double opacity = 1);

  /// Rounded to bytes, after adding grain of up to `grain` levels either way.
  Picture develop(double grain, std::uint64_t seed) const;

 private:
  std::size_t stride() const { return static_cast<std::size_t>(width_); }
  static std::size_t column(int x) { return static_cast<std::size_t>(x); }

  int width_;
  int height_;
  std::vector<Color> pixels_;
};

template <class ColorAt>
void Canvas::fill(ColorAt&& color) {
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) at(x, y) = color(Point{x + 0.5, y + 0.5});
  }
}

template <class Distance, class ColorAt>
void Canvas::paint(const Frame& frame, Point center, double reach, Distance&& distance,
                   ColorAt&& color, double opacity) {
  const double unit = frame.unit();
  const Point middle = frame.to_pixel(center);
  const double radius = reach * unit + 1;
  const auto clip = [](double value, int limit) {
    return static_cast<int>(std::clamp(std::floor(value), 0.0, static_cast<double>(limit)));
  };
  const int left = clip(middle.x - radius, width_);
  const int right = clip(middle.x + radius + 1, width_);
  const int top = clip(middle.y - radius, height_);
  const int bottom = clip(middle.y + radius + 1, height_);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const Point local = frame.to_local({x + 0.5, y + 0.5});
      const double inside = distance(local);
      const double coverage = std::clamp(0.5 - inside * unit, 0.0, 1.0) * opacity;
      if (coverage > 0) at(x, y) = mix(at(x, y), color(local, inside), coverage);
    }
  }
}

}  // namespace collar::apps::synth
