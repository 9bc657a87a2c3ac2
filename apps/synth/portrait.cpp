// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/portrait.hpp"

#include "apps/synth/animal.hpp"
#include "apps/synth/background.hpp"
#include "engine/random.hpp"

namespace collar::apps::synth {

Picture portrait(const Breed& breed, std::uint64_t seed, std::uint64_t sample) {
  RandomStream random({.seed = seed, .purpose = Purpose::synthesis, .sample = sample});
  const int width = 140 + static_cast<int>(random.below(221));
  const int height = 140 + static_cast<int>(random.below(221));
  Canvas canvas(width, height);

  const double ground = random.uniform(0.45F, 0.75F);
  draw_background(canvas, ground, random);

  // The tallest animals (a hare that sits) are 1.25 units, the widest 0.9.
  const double largest = std::min(width / 0.95, height / 1.2);
  const double unit = largest * random.uniform(0.75F, 1.0F);
  const double x = 0.5 + random.uniform(-0.12F, 0.12F);
  const double y = 0.94 + random.uniform(-0.06F, 0.03F);
  const double turn = random.uniform(-0.04F, 0.04F);
  const bool mirrored = random.chance(0.5);
  draw_animal(canvas, Frame({x * width, y * height}, unit, turn, mirrored), breed, random);

  const double exposure = random.uniform(0.78F, 1.15F);
  const double warmth = random.uniform(-0.07F, 0.07F);
  const double vignette = random.uniform(0.0F, 0.25F);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const double dx = 2.0 * column / width - 1;
      const double dy = 2.0 * row / height - 1;
      const double light = exposure * (1 - vignette * 0.5 * (dx * dx + dy * dy));
      Color& color = canvas.at(column, row);
      color = {color.red * light * (1 + warmth), color.green * light,
               color.blue * light * (1 - warmth)};
    }
  }
  const double grain = random.uniform(1.0F, 5.0F);
  return canvas.develop(grain, random.next_u64());
}

}  // namespace collar::apps::synth
