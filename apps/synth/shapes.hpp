// SPDX-License-Identifier: Apache-2.0
// Points, frames and signed distances: the geometry of the toy pictures. Only +, -, *, / and sqrt
// of doubles are used, which IEEE 754 defines to the last bit, so the pictures of one seed are the
// same bytes on every machine. Distances are negative inside; y grows downwards.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace collar::apps::synth {

struct Point {
  double x = 0;
  double y = 0;
};

inline Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y};
}
inline Point operator-(Point a, Point b) {
  return {a.x - b.x, a.y - b.y};
}
inline Point operator*(Point a, double factor) {
  return {a.x * factor, a.y * factor};
}
inline double dot(Point a, Point b) {
  return a.x * b.x + a.y * b.y;
}
inline double length(Point a) {
  return std::sqrt(dot(a, a));
}
inline double mix(double a, double b, double share) {
  return a + (b - a) * share;
}
/// 0 below `low`, 1 above `high`, a cubic between.
inline double smooth_step(double low, double high, double x) {
  const double t = std::clamp((x - low) / (high - low), 0.0, 1.0);
  return t * t * (3 - 2 * t);
}

/// A right-angled coordinate system of its own size, turn and handedness on the canvas.
class Frame {
 public:
  /// `turn` is the tangent of half the angle, clockwise; `unit` is the pixels of one local unit.
  Frame(Point origin, double unit, double turn = 0, bool mirrored = false) : origin_(origin) {
    const double norm = 1 + turn * turn;
    const Point direction{(1 - turn * turn) / norm, 2 * turn / norm};
    x_axis_ = direction * (mirrored ? -unit : unit);
    y_axis_ = Point{-direction.y, direction.x} * unit;
  }

  Point to_pixel(Point local) const { return origin_ + x_axis_ * local.x + y_axis_ * local.y; }
  Point to_local(Point pixel) const {
    const Point from_origin = pixel - origin_;
    const double square = dot(y_axis_, y_axis_);
    return {dot(from_origin, x_axis_) / square, dot(from_origin, y_axis_) / square};
  }
  double unit() const { return length(y_axis_); }

  /// A frame at a local point, turned and scaled relative to this one.
  Frame child(Point local_origin, double turn, double scale = 1) const {
    Frame turned({}, scale, turn);
    Frame result = *this;
    result.origin_ = to_pixel(local_origin);
    result.x_axis_ = x_axis_ * turned.x_axis_.x + y_axis_ * turned.x_axis_.y;
    result.y_axis_ = x_axis_ * turned.y_axis_.x + y_axis_ * turned.y_axis_.y;
    return result;
  }

 private:
  Point origin_;
  Point x_axis_;
  Point y_axis_;
};

inline double circle(Point p, Point center, double radius) {
  return length(p - center) - radius;
}

/// First-order distance to an ellipse with axes along x and y; exact on its edge.
inline double ellipse(Point p, Point center, Point radii) {
  const Point scaled{(p.x - center.x) / radii.x, (p.y - center.y) / radii.y};
  const double gradient = length({scaled.x / radii.x, scaled.y / radii.y});
  if (gradient == 0) return -std::min(radii.x, radii.y);
  const double value = length(scaled);
  return value * (value - 1) / gradient;
}

/// A limb from `a` to `b` whose radius goes from `radius_a` to `radius_b`.
inline double limb(Point p, Point a, Point b, double radius_a, double radius_b) {
  const Point along = b - a;
  const double share = std::clamp(dot(p - a, along) / dot(along, along), 0.0, 1.0);
  return length(p - a - along * share) - mix(radius_a, radius_b, share);
}

/// The union of two shapes with a fillet of about this width between them.
inline double smooth_union(double a, double b, double width) {
  const double share = std::clamp(0.5 + 0.5 * (b - a) / width, 0.0, 1.0);
  return mix(b, a, share) - width * share * (1 - share);
}

/// A hash of a lattice point as a number in [0, 1).
inline double lattice_noise(std::int64_t x, std::int64_t y, std::uint64_t seed) {
  std::uint64_t z = seed + static_cast<std::uint64_t>(x) * 0x9E3779B97F4A7C15u +
                    static_cast<std::uint64_t>(y) * 0xC2B2AE3D27D4EB4Fu;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// Smooth noise in [0, 1) whose features are about one unit wide.
inline double value_noise(Point p, std::uint64_t seed) {
  const double floor_x = std::floor(p.x);
  const double floor_y = std::floor(p.y);
  const auto x = static_cast<std::int64_t>(floor_x);
  const auto y = static_cast<std::int64_t>(floor_y);
  const double share_x = smooth_step(0, 1, p.x - floor_x);
  const double share_y = smooth_step(0, 1, p.y - floor_y);
  const double upper = mix(lattice_noise(x, y, seed), lattice_noise(x + 1, y, seed), share_x);
  const double lower =
      mix(lattice_noise(x, y + 1, seed), lattice_noise(x + 1, y + 1, seed), share_x);
  return mix(upper, lower, share_y);
}

/// A periodic wave of period 1 between -1 and 1, made of parabolas.
inline double wave(double x) {
  const double t = 2 * (x - std::floor(x)) - 1;  // -1 … 1
  return 4 * t * (1 - (t < 0 ? -t : t));
}

}  // namespace collar::apps::synth
