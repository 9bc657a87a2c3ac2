// SPDX-License-Identifier: Apache-2.0
// One toy photo: background, animal, light and grain, as a pure function of where it stands.
#pragma once

#include <cstdint>

#include "apps/synth/breed.hpp"
#include "apps/synth/canvas.hpp"

namespace collar::apps::synth {

/// Photo number `sample` of the set that `seed` stands for, 140 to 360 pixels on each side.
Picture portrait(const Breed& breed, std::uint64_t seed, std::uint64_t sample);

}  // namespace collar::apps::synth
