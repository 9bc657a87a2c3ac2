// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/background.hpp"

#include <array>

namespace collar::apps::synth {
namespace {

struct Scenery {
  Color sky_top;
  Color sky_bottom;
  Color ridge;
  Color ground_far;
  Color ground_near;
};

constexpr std::array<Scenery, 4> kOutdoors = {{
    {{110, 170, 226}, {206, 228, 240}, {104, 150, 104}, {128, 178, 92}, {78, 136, 60}},   // meadow
    {{96, 176, 220}, {226, 236, 226}, {72, 150, 180}, {232, 214, 164}, {206, 180, 124}},  // beach
    {{150, 168, 190},
     {222, 228, 236},
     {140, 156, 168},
     {236, 240, 246},
     {206, 216, 230}},                                                                 // winter
    {{236, 150, 100}, {250, 214, 150}, {120, 84, 96}, {166, 140, 84}, {120, 96, 62}},  // evening
}};

/// Height of a chain of hills above the horizon, in pixels.
double hills(double x, double size, std::uint64_t seed) {
  return size * (0.15 + 0.35 * value_noise({x / (0.9 * size), 0.5}, seed) +
                 0.08 * value_noise({x / (0.2 * size), 3.5}, seed));
}

void draw_outdoors(Canvas& canvas, double horizon, const Scenery& scenery, RandomStream& random) {
  const std::uint64_t seed = random.next_u64();
  const double size = std::min(canvas.width(), canvas.height());
  canvas.fill([&](Point p) {
    if (p.y < horizon) {
      const Color sky = mix(scenery.sky_top, scenery.sky_bottom, p.y / horizon);
      const double cloud = value_noise({p.x / (0.35 * size), p.y / (0.13 * size)}, seed) +
                           0.4 * value_noise({p.x / (0.12 * size), p.y / (0.05 * size)}, seed + 1);
      const Color cloudy = mix(sky, Color{252, 250, 246}, 0.7 * smooth_step(0.8, 1.1, cloud));
      const double ridge = horizon - 0.4 * hills(p.x, size, seed + 2) - p.y;
      return mix(scenery.ridge, cloudy, smooth_step(-1, 1, ridge));
    }
    const double depth = (p.y - horizon) / (canvas.height() - horizon + 1);
    const double clump =
        0.88 + 0.24 * value_noise({p.x / (0.05 * size), p.y / (0.02 * size)}, seed + 3);
    return mix(scenery.ground_far, scenery.ground_near, depth) * clump;
  });
}

/// Blades of grass, pebbles or flakes: short strokes on the ground.
void draw_strokes(Canvas& canvas, double horizon, Color color, RandomStream& random) {
  const double size = std::min(canvas.width(), canvas.height());
  const std::uint32_t count = 40 + random.below(60);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double x = random.uniform() * canvas.width();
    const double y = mix(horizon, canvas.height(), random.uniform());
    const double lean = random.uniform(-0.3F, 0.3F);
    const double shade = random.uniform(0.7F, 1.3F);
    const Frame frame({x, y}, 0.035 * size, lean);
    canvas.paint(
        frame, {0, -0.5}, 0.7,
        [](Point p) {
          return limb(p, {0, 0}, {0, -1}, 0.12, 0.03);
        },
        [&](Point, double) { return color * shade; });
  }
}

void draw_room(Canvas& canvas, double horizon, RandomStream& random) {
  constexpr std::array<Color, 6> kWalls = {{{214, 196, 170},
                                            {160, 190, 196},
                                            {200, 170, 176},
                                            {176, 190, 160},
                                            {120, 130, 156},
                                            {226, 216, 200}}};
  constexpr std::array<Color, 4> kFloors = {
      {{156, 110, 72}, {196, 156, 110}, {110, 84, 66}, {150, 150, 150}}};
  const Color wall = kWalls[random.below(kWalls.size())];
  const Color floor = kFloors[random.below(kFloors.size())];
  const std::uint32_t wallpaper = random.below(3);
  const double size = std::min(canvas.width(), canvas.height());
  const double step = size * random.uniform(0.09F, 0.16F);
  const std::uint64_t seed = random.next_u64();
  canvas.fill([&](Point p) {
    if (p.y < horizon) {
      double pattern = 0;
      if (wallpaper == 1) pattern = smooth_step(-0.1, 0.1, wave(p.x / step));
      if (wallpaper == 2) pattern = smooth_step(0.5, 0.7, wave(p.x / step) * wave(p.y / step));
      const Color paper = mix(wall, wall * 0.86, pattern);
      return horizon - p.y < 0.035 * size ? Color{238, 234, 226} : paper;
    }
    const double depth = 1 + 2.5 * (p.y - horizon) / size;
    const double plank = (p.x - 0.5 * canvas.width()) / depth / (0.16 * size);
    const double row = std::floor(plank);
    const double gap = smooth_step(0.0, 0.05, plank - row);
    const double tone = 0.9 + 0.2 * lattice_noise(static_cast<std::int64_t>(row), 0, seed);
    const double grain =
        0.95 + 0.1 * value_noise({plank * 9, (p.y - horizon) / (0.3 * size)}, seed);
    return floor * (tone * grain * mix(0.75, 1.0, gap));
  });
}

/// A window or a picture on the wall.
void draw_frame(Canvas& canvas, double horizon, RandomStream& random) {
  const double size = std::min(canvas.width(), canvas.height());
  const double x = random.uniform() * canvas.width();
  const double half = size * random.uniform(0.1F, 0.16F);
  const double shade = random.uniform();
  const Color glass = mix(Color{150, 196, 226}, Color{236, 206, 150}, shade);
  const Frame frame({x, horizon * 0.42}, half);
  canvas.paint(
      frame, {0, 0}, 1.7,
      [](Point p) { return std::max(std::max(p.x, -p.x) - 1, std::max(p.y, -p.y) - 1.2); },
      [&](Point p, double depth) {
        const bool bar = depth > -0.12 || (p.x > -0.05 && p.x < 0.05);
        return bar ? Color{240, 236, 228} : mix(glass, Color{250, 250, 250}, 0.3 * (0.5 - p.y));
      });
}

void draw_rug(Canvas& canvas, double horizon, RandomStream& random) {
  constexpr std::array<Color, 5> kRugs = {
      {{170, 70, 66}, {70, 100, 150}, {90, 130, 96}, {206, 170, 90}, {130, 96, 140}}};
  const Color rug = kRugs[random.below(kRugs.size())];
  const double middle = mix(horizon, canvas.height(), 0.6);
  const Frame frame({0.5 * canvas.width(), middle}, 0.48 * canvas.width());
  canvas.paint(
      frame, {0, 0}, 1,
      [](Point p) {
        return ellipse(p, {0, 0}, {0.95, 0.3});
      },
      [&](Point, double depth) {
        return depth > -0.05 && depth < -0.025 ? mix(rug, Color{250, 246, 236}, 0.7) : rug;
      });
}

}  // namespace

void draw_background(Canvas& canvas, double ground, RandomStream& random) {
  const double horizon = ground * canvas.height();
  const std::uint32_t kind = random.below(6);
  if (kind < kOutdoors.size()) {
    const Scenery& scenery = kOutdoors[kind];
    draw_outdoors(canvas, horizon, scenery, random);
    draw_strokes(canvas, horizon, scenery.ground_near * 0.9, random);
    return;
  }
  draw_room(canvas, horizon, random);
  if (random.chance(0.7)) draw_frame(canvas, horizon, random);
  if (random.chance(0.6)) draw_rug(canvas, horizon, random);
}

}  // namespace collar::apps::synth
