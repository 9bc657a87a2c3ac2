// SPDX-License-Identifier: Apache-2.0
// Fur: which colour a coat has at a point of a body part. One pattern runs over the whole animal.
#pragma once

#include "apps/synth/breed.hpp"
#include "apps/synth/canvas.hpp"
#include "engine/random.hpp"

namespace collar::apps::synth {

enum class Part { body, head, ear, limb, tail };

class Fur {
 public:
  /// Ground and marking colours are drawn from `random`; one is light and the other dark.
  Fur(Coat coat, RandomStream& random);

  /// `p` in units of the animal, relative to the middle of the part; `depth` is the distance to the
  /// outline (negative inside), which is drawn darker.
  Color color(Part part, Point p, double depth) const;
  /// Muzzle, chest and belly.
  Color soft() const { return soft_; }
  Color outline() const { return outline_; }

 private:
  double marking(Part part, Point p) const;

  Coat coat_;
  std::uint64_t seed_;
  Color ground_;
  Color marking_;
  Color soft_;
  Color outline_;
};

}  // namespace collar::apps::synth
