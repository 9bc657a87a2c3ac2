// SPDX-License-Identifier: Apache-2.0
// The breeds of the toy pets. A breed is a head and a coat pattern; colours, background, size and
// pose belong to the single animal, so that a classifier has to look at shapes and patterns.
#pragma once

#include <string>
#include <vector>

namespace collar::apps::synth {

enum class Head { lynx, lop, bear, fox, hare, owl, mouse };
enum class Coat { tiger, freckle, bandit, domino, saddle, velvet };

inline constexpr int kHeads = 7;
inline constexpr int kCoats = 6;
inline constexpr int kBreeds = kHeads * kCoats;

struct Breed {
  Head head = Head::lynx;
  Coat coat = Coat::tiger;
};

/// Breed number `index`, 0 to kBreeds - 1. Neighbours differ in both head and coat.
Breed breed(int index);
/// "Tiger_Lynxkin"
std::string name_of(const Breed& breed);

}  // namespace collar::apps::synth
