// SPDX-License-Identifier: Apache-2.0
// What is behind the animal: a meadow, a room, a beach or a winter's day.
#pragma once

#include "apps/synth/canvas.hpp"
#include "engine/random.hpp"

namespace collar::apps::synth {

/// Covers the whole canvas. `ground` is the height of the horizon, as a share of the canvas.
void draw_background(Canvas& canvas, double ground, RandomStream& random);

}  // namespace collar::apps::synth
