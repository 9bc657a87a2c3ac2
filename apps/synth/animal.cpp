// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/animal.hpp"

#include <array>

#include "apps/synth/coat.hpp"

namespace collar::apps::synth {
namespace {

constexpr std::array<Color, 5> kIris = {
    {{120, 170, 70}, {214, 160, 50}, {90, 150, 200}, {120, 80, 45}, {80, 160, 150}}};
constexpr Color kNight{28, 24, 28};
constexpr Color kSnow{252, 250, 246};
constexpr Color kPink{222, 150, 146};

/// Paints parts of one animal with its fur.
class Painter {
 public:
  Painter(Canvas& canvas, const Frame& frame, const Fur& fur)
      : canvas_(canvas), frame_(frame), fur_(fur) {}

  /// A part covered with fur; the pattern is laid out around `middle`.
  template <class Distance>
  void furry(Part part, Point middle, double reach, Distance&& distance, double shade = 1) const {
    canvas_.paint(frame_, middle, reach, distance, [&](Point p, double depth) {
      return fur_.color(part, p - middle, depth) * shade;
    });
  }
  void furry_limb(Part part, Point a, Point b, double radius_a, double radius_b,
                  double shade = 1) const {
    const Point middle = (a + b) * 0.5;
    const double reach = length(b - a) * 0.5 + std::max(radius_a, radius_b);
    furry(
        part, middle, reach, [&](Point p) { return limb(p, a, b, radius_a, radius_b); }, shade);
  }
  void plain_ellipse(Point center, Point radii, Color color, double opacity = 1) const {
    canvas_.paint(
        frame_, center, std::max(radii.x, radii.y),
        [&](Point p) { return ellipse(p, center, radii); }, [&](Point, double) { return color; },
        opacity);
  }
  void plain_limb(Point a, Point b, double radius_a, double radius_b, Color color,
                  double opacity = 1) const {
    canvas_.paint(
        frame_, (a + b) * 0.5, length(b - a) * 0.5 + std::max(radius_a, radius_b),
        [&](Point p) { return limb(p, a, b, radius_a, radius_b); },
        [&](Point, double) { return color; }, opacity);
  }
  void paw(Point center, double width) const {
    furry(Part::limb, center, width, [&](Point p) {
      return ellipse(p, center, {width, 0.6 * width});
    });
    for (const double toe : {-0.35, 0.35}) {
      const Point knuckle = center + Point{toe * width, 0};
      plain_limb(knuckle, knuckle + Point{0, 0.4 * width}, 0.006, 0.006, fur_.outline(), 0.8);
    }
  }

  Painter within(const Frame& frame) const { return {canvas_, frame, fur_}; }
  const Frame& frame() const { return frame_; }
  const Fur& fur() const { return fur_; }

 private:
  Canvas& canvas_;
  Frame frame_;
  const Fur& fur_;
};

/// One ear; `side` is -1 for the left one. The head is an ellipse of about 0.2 x 0.175 around the
/// origin.
void draw_ear(const Painter& painter, Head head, double side, double droop) {
  const auto at = [side](double x, double y) { return Point{side * x, y}; };
  switch (head) {
    case Head::lynx:  // pointed, with a tuft
      painter.plain_limb(at(0.155, -0.23), at(0.17, -0.3), 0.012, 0.002, painter.fur().outline());
      painter.furry_limb(Part::ear, at(0.115, -0.105), at(0.155, -0.235), 0.075, 0.012);
      painter.plain_limb(at(0.12, -0.12), at(0.15, -0.21), 0.04, 0.006, kPink, 0.8);
      break;
    case Head::lop: {  // hanging
      const Point tip = at(0.235 + 0.03 * droop, 0.1 - 0.05 * droop);
      painter.furry_limb(Part::ear, at(0.15, -0.11), at(0.215, -0.05), 0.05, 0.065);
      painter.furry_limb(Part::ear, at(0.205, -0.06), tip, 0.06, 0.075);
      break;
    }
    case Head::bear:  // small and round
      painter.furry(Part::ear, at(0.145, -0.145), 0.075,
                    [&](Point p) { return circle(p, at(0.145, -0.145), 0.075); });
      painter.plain_ellipse(at(0.145, -0.14), {0.042, 0.042}, kPink, 0.7);
      break;
    case Head::fox:  // tall triangles set wide apart
      painter.furry_limb(Part::ear, at(0.125, -0.1), at(0.23, -0.33), 0.095, 0.008);
      painter.plain_limb(at(0.135, -0.13), at(0.215, -0.29), 0.055, 0.004, kNight, 0.55);
      break;
    case Head::hare: {  // very long
      const Point tip = at(0.1 + 0.1 * droop, -0.47 + 0.08 * droop);
      painter.furry_limb(Part::ear, at(0.085, -0.13), tip, 0.05, 0.04);
      painter.plain_limb(at(0.087, -0.16), tip, 0.027, 0.02, kPink, 0.8);
      break;
    }
    case Head::owl:  // broad brows that end in feathery tips
      painter.furry_limb(Part::ear, at(0.04, -0.14), at(0.265, -0.185), 0.05, 0.004);
      painter.furry_limb(Part::ear, at(0.1, -0.11), at(0.255, -0.125), 0.05, 0.004);
      break;
    case Head::mouse:  // saucers
      painter.furry(Part::ear, at(0.21, -0.15), 0.13,
                    [&](Point p) { return circle(p, at(0.21, -0.15), 0.13); });
      painter.plain_ellipse(at(0.212, -0.148), {0.092, 0.092}, kPink, 0.85);
      break;
  }
}

void draw_ears(const Painter& painter, Head head, double droop) {
  for (const double side : {-1.0, 1.0}) draw_ear(painter, head, side, droop);
}

void draw_eye(const Painter& painter, Point center, double size, double slit, Color iris,
              Point gaze) {
  painter.plain_ellipse(center, {size * 1.16, size * 1.1}, painter.fur().outline());
  painter.plain_ellipse(center, {size, size * 0.95}, iris);
  painter.plain_ellipse(center + gaze, {size * slit, size * 0.78}, kNight);
  painter.plain_ellipse(center + Point{-0.3 * size, -0.35 * size}, {size * 0.26, size * 0.26},
                        kSnow);
}

void draw_head(const Painter& painter, Head head, RandomStream& random) {
  const double droop = random.uniform();
  const double eye_size = random.uniform(0.034F, 0.044F);
  const double slit = head == Head::lynx || head == Head::fox ? 0.34 : 0.66;
  const Color iris = kIris[random.below(kIris.size())];
  const double gaze_x = random.uniform(-0.012F, 0.012F);
  const double gaze_y = random.uniform(-0.006F, 0.006F);
  const bool pink_nose = random.chance(0.4);
  const bool tongue = random.chance(0.25);

  const bool hanging = head == Head::lop;  // over the cheeks, others are behind the skull
  if (!hanging) draw_ears(painter, head, droop);
  const double long_face = head == Head::fox || head == Head::mouse ? 0.03 : 0.0;
  painter.furry(Part::head, {0, 0}, 0.26, [&](Point p) {
    const double skull = ellipse(p, {0, -0.015}, {0.2 - long_face, 0.17});
    const double chin = ellipse(p, {0, 0.07 + long_face}, {0.15 - 1.5 * long_face, 0.11});
    return smooth_union(skull, chin, 0.06);
  });
  if (hanging) draw_ears(painter, head, droop);

  const double muzzle = 0.075 + long_face;
  for (const double side : {-1.0, 1.0}) {
    painter.plain_ellipse({side * 0.042, muzzle}, {0.066, 0.054}, painter.fur().soft());
  }
  if (tongue) painter.plain_limb({0, muzzle + 0.04}, {0, muzzle + 0.075}, 0.022, 0.024, kPink);
  painter.plain_limb({0, muzzle - 0.01}, {0, muzzle + 0.03}, 0.006, 0.006, kNight, 0.8);
  for (const double side : {-1.0, 1.0}) {
    painter.plain_limb({0, muzzle + 0.03}, {side * 0.045, muzzle + 0.042}, 0.006, 0.005, kNight,
                       0.8);
    draw_eye(painter, {side * 0.085, -0.025}, eye_size, slit, iris, {gaze_x, gaze_y});
    for (const double slope : {-0.03, 0.0, 0.03}) {
      painter.plain_limb({side * 0.07, muzzle + slope * 0.4}, {side * 0.25, muzzle - 0.02 + slope},
                         0.0035, 0.0015, kSnow, 0.75);
    }
  }
  painter.plain_ellipse({0, muzzle - 0.025}, {0.03, 0.021}, pink_nose ? kPink : kNight);
  painter.plain_ellipse({-0.009, muzzle - 0.032}, {0.009, 0.005}, kSnow, 0.5);
}

void draw_tail(const Painter& painter, Point root, Point bend, Point tip, double radius) {
  const Point middle = (root + bend) * 0.5;
  painter.furry(Part::tail, middle, length(tip - middle) + 2 * radius, [&](Point p) {
    return smooth_union(limb(p, root, bend, radius * 0.8, radius),
                        limb(p, bend, tip, radius, radius * 0.55), 0.05);
  });
}

void draw_sitting(const Painter& painter, double plump, double tail) {
  draw_tail(painter, {0.1, -0.07}, {0.3, -0.08 - 0.1 * tail}, {0.32 + 0.06 * tail, -0.3}, 0.05);
  const Point middle{0, -0.28};
  painter.furry(Part::body, middle, 0.45, [&](Point p) {
    const double belly = ellipse(p, {0, -0.2}, {0.19 + 0.05 * plump, 0.2});
    const double chest = ellipse(p, {0, -0.42}, {0.13, 0.17});
    return smooth_union(belly, chest, 0.1);
  });
  painter.plain_ellipse({0, -0.37}, {0.075, 0.12}, painter.fur().soft(), 0.8);
  for (const double side : {-1.0, 1.0}) {
    painter.furry(Part::body, {side * (0.17 + 0.03 * plump), -0.12}, 0.14, [&](Point p) {
      return ellipse(p, {side * (0.17 + 0.03 * plump), -0.12}, {0.1, 0.12});
    });
    painter.paw({side * (0.2 + 0.03 * plump), -0.025}, 0.08);
    painter.furry_limb(Part::limb, {side * 0.07, -0.32}, {side * 0.075, -0.05}, 0.05, 0.042);
    painter.paw({side * 0.08, -0.025}, 0.062);
  }
}

void draw_standing(const Painter& painter, double plump, double tail) {
  const double spread = 0.05 * tail;
  draw_tail(painter, {-0.27, -0.42}, {-0.4, -0.45}, {-0.43 - 0.05 * tail, -0.62 - 0.1 * tail},
            0.042);
  for (const double x : {-0.17, 0.26}) {
    painter.furry_limb(Part::limb, {x, -0.33}, {x + spread, -0.06}, 0.065, 0.04, 0.72);
    painter.paw({x + 0.02 + spread, -0.045}, 0.055);
  }
  painter.furry(Part::body, {0, -0.38}, 0.48, [&](Point p) {
    const double trunk = limb(p, {-0.2, -0.38}, {0.2, -0.4}, 0.13 + 0.04 * plump, 0.135);
    return smooth_union(trunk, limb(p, {0.2, -0.42}, {0.3, -0.58}, 0.11, 0.09), 0.08);
  });
  for (const double x : {-0.24, 0.17}) {
    painter.furry_limb(Part::limb, {x, -0.32}, {x - spread, -0.05}, 0.075, 0.042);
    painter.paw({x + 0.02 - spread, -0.025}, 0.062);
  }
}

void draw_lying(const Painter& painter, double plump, double tail) {
  draw_tail(painter, {-0.36, -0.08}, {-0.45, -0.05}, {-0.2 - 0.2 * tail, -0.03}, 0.045);
  painter.furry(Part::body, {-0.08, -0.17}, 0.45, [&](Point p) {
    const double back = ellipse(p, {-0.12, -0.17}, {0.31, 0.15 + 0.03 * plump});
    const double shoulder = ellipse(p, {0.14, -0.2}, {0.17, 0.17});
    return smooth_union(back, shoulder, 0.08);
  });
  painter.furry(Part::body, {-0.27, -0.12}, 0.14, [&](Point p) {
    return ellipse(p, {-0.27, -0.12}, {0.13, 0.115});
  });
  for (const double x : {0.1, 0.26}) {
    painter.furry_limb(Part::limb, {x, -0.12}, {x + 0.03, -0.04}, 0.055, 0.045);
    painter.paw({x + 0.035, -0.03}, 0.07);
  }
}

}  // namespace

void draw_animal(Canvas& canvas, const Frame& frame, const Breed& breed, RandomStream& random) {
  const Fur fur(breed.coat, random);
  const Painter painter(canvas, frame, fur);
  const double plump = random.uniform();
  const double tail = random.uniform();
  const double tilt = random.uniform(-0.1F, 0.1F);
  const std::uint32_t pose = random.below(3);

  painter.plain_ellipse({0, -0.01}, {0.42, 0.055}, {20, 20, 30}, 0.3);  // the shadow
  Point head{0, -0.66};
  if (pose == 0) {
    draw_sitting(painter, plump, tail);
  } else if (pose == 1) {
    draw_standing(painter, plump, tail);
    head = {0.3, -0.7};
  } else {
    draw_lying(painter, plump, tail);
    head = {0.18, -0.42};
  }
  draw_head(painter.within(frame.child(head, tilt, 1.1)), breed.head, random);
}

}  // namespace collar::apps::synth
