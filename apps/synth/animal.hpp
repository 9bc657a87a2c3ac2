// SPDX-License-Identifier: Apache-2.0
// Draws one animal: a breed in a pose, with colours of its own.
#pragma once

#include "apps/synth/breed.hpp"
#include "apps/synth/canvas.hpp"
#include "engine/random.hpp"

namespace collar::apps::synth {

/// Paints an animal of this breed that stands on the local origin of `frame` and is about one unit
/// tall. Pose, colours and details are drawn from `random`.
void draw_animal(Canvas& canvas, const Frame& frame, const Breed& breed, RandomStream& random);

}  // namespace collar::apps::synth
