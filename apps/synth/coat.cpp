// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/coat.hpp"

#include <array>

namespace collar::apps::synth {
namespace {

constexpr std::array<Color, 6> kLight = {{{240, 232, 214},
                                          {233, 200, 150},
                                          {222, 158, 92},
                                          {202, 206, 212},
                                          {226, 190, 170},
                                          {214, 206, 160}}};
constexpr std::array<Color, 6> kDark = {
    {{58, 54, 58}, {104, 68, 48}, {92, 100, 116}, {140, 76, 40}, {70, 62, 84}, {84, 84, 62}}};

/// 1 inside round spots scattered one to a cell, 0 outside.
double spots(Point p, double cell, double radius, std::uint64_t seed) {
  const Point q{p.x / cell, p.y / cell};
  double nearest = 2;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const double cell_x = std::floor(q.x) + dx;
      const double cell_y = std::floor(q.y) + dy;
      const auto x = static_cast<std::int64_t>(cell_x);
      const auto y = static_cast<std::int64_t>(cell_y);
      const Point spot{cell_x + 0.25 + 0.5 * lattice_noise(x, y, seed),
                       cell_y + 0.25 + 0.5 * lattice_noise(x, y, seed + 1)};
      nearest = std::min(nearest, length(q - spot));
    }
  }
  return 1 - smooth_step(radius - 0.07, radius + 0.07, nearest);
}

double stripes(Point p, std::uint64_t seed) {
  const double wobble = 0.55 * (value_noise(p * 7, seed) - 0.5);
  return smooth_step(-0.05, 0.3, wave(p.x * 8.5 + 1.8 * p.y + wobble));
}

}  // namespace

Fur::Fur(Coat coat, RandomStream& random) : coat_(coat), seed_(random.next_u64()) {
  const Color light = kLight[random.below(kLight.size())];
  const Color dark = kDark[random.below(kDark.size())];
  const bool dark_ground = random.chance(0.5);
  ground_ = dark_ground ? dark : light;
  marking_ = dark_ground ? light : dark;
  soft_ = mix(ground_, Color{250, 244, 234}, dark_ground ? 0.3 : 0.55);
  outline_ = dark * 0.55;
}

double Fur::marking(Part part, Point p) const {
  switch (coat_) {
    case Coat::tiger:
      return stripes(part == Part::limb || part == Part::tail ? Point{p.y, p.x} : p, seed_);
    case Coat::freckle:
      return spots(p, 0.085, 0.3, seed_);
    case Coat::bandit: {  // points: mask, ears, legs and tail
      if (part == Part::head) {
        return 1 - smooth_step(-0.01, 0.02, ellipse(p, {0, -0.01}, {0.185, 0.075}));
      }
      return part == Part::body ? 0.0 : 1.0;
    }
    case Coat::domino:
      return smooth_step(0.48, 0.52, value_noise(p * 7, seed_));
    case Coat::saddle: {  // the upper half, cap and ears
      const double edge = 0.025 * (value_noise(p * 12, seed_) - 0.5);
      if (part == Part::limb) return 0;
      if (part == Part::head) return 1 - smooth_step(-0.075, -0.055, p.y + edge);
      return part == Part::body ? 1 - smooth_step(-0.03, 0.0, p.y + edge) : 1.0;
    }
    case Coat::velvet:
      return 0;
  }
  return 0;
}

Color Fur::color(Part part, Point p, double depth) const {
  const Color plain = mix(ground_, marking_, marking(part, p));
  const double tuft = 0.93 + 0.14 * value_noise({p.x * 60, p.y * 25}, seed_ + 2);
  const double light = 1.04 - 0.35 * (p.x * 0.4 + p.y);
  return mix(plain * (tuft * light), outline_, 0.8 * smooth_step(-0.016, -0.004, depth));
}

}  // namespace collar::apps::synth
