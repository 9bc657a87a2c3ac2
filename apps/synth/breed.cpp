// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/breed.hpp"

#include <array>
#include <string_view>

namespace collar::apps::synth {
namespace {

constexpr std::array<std::string_view, kHeads> kHeadNames = {
    "Lynxkin", "Lopling", "Bearling", "Foxling", "Harekin", "Owlkin", "Mouseling"};
constexpr std::array<std::string_view, kCoats> kCoatNames = {"Tiger",  "Freckle", "Bandit",
                                                             "Domino", "Saddle",  "Velvet"};

}  // namespace

Breed breed(int index) {
  // 6 and 7 have no common divisor: every pair comes up once.
  return {static_cast<Head>(index % kHeads), static_cast<Coat>(index % kCoats)};
}

std::string name_of(const Breed& breed) {
  std::string name(kCoatNames[static_cast<std::size_t>(breed.coat)]);
  return (name += '_') += kHeadNames[static_cast<std::size_t>(breed.head)];
}

}  // namespace collar::apps::synth
