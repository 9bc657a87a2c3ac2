// SPDX-License-Identifier: Apache-2.0
// Which pointers lie in shared memory, and where peers have what lies there.
#include "comm/transport/window_registry.hpp"

#include <array>
#include <catch2/catch.hpp>

using collar::comm::Window;
using collar::comm::WindowRegistry;

namespace {

/// The memory of two ranks, as each of them sees it.
struct Memory {
  std::array<std::array<std::byte, 100>, 2> ranks;
  Window window() { return {{ranks[0].data(), ranks[1].data()}, 100, nullptr}; }
};

}  // namespace

TEST_CASE("The same offset of the same window is the same place on all ranks") {
  Memory first, second;
  WindowRegistry rank_0, rank_1;
  rank_0.add(0, first.window(), 0);
  rank_0.add(1, second.window(), 0);
  rank_1.add(0, first.window(), 1);
  rank_1.add(1, second.window(), 1);
  const auto place = rank_0.place_of(&first.ranks[0][10], 20);
  CHECK(place != WindowRegistry::kNotShared);
  CHECK(place == rank_1.place_of(&first.ranks[1][10], 20));
  CHECK(place != rank_1.place_of(&first.ranks[1][11], 20));
  CHECK(place != rank_1.place_of(&second.ranks[1][10], 20));
  CHECK(rank_0.counterpart(1, &second.ranks[0][7]) == &second.ranks[1][7]);
  CHECK(rank_1.counterpart(0, &second.ranks[1][7]) == &second.ranks[0][7]);
}

TEST_CASE("Only bytes that lie in a window whole are shared") {
  Memory memory;
  WindowRegistry registry;
  CHECK(registry.place_of(&memory, 1) == WindowRegistry::kNotShared);
  registry.add(0, memory.window(), 0);
  std::byte* const begin = memory.ranks[0].data();
  CHECK(registry.place_of(begin, 100) != WindowRegistry::kNotShared);
  CHECK(registry.place_of(begin + 100, 0) != WindowRegistry::kNotShared);
  CHECK(registry.place_of(begin, 101) == WindowRegistry::kNotShared);
  CHECK(registry.place_of(begin + 1, SIZE_MAX) == WindowRegistry::kNotShared);
  CHECK(registry.place_of(memory.ranks[1].data() + 50, 1) == WindowRegistry::kNotShared);
  registry.remove(0);
  CHECK(registry.place_of(begin, 100) == WindowRegistry::kNotShared);
}

TEST_CASE("No pointer is a place of its own, and stays none") {
  const WindowRegistry registry;
  CHECK(registry.place_of(nullptr, 0) == WindowRegistry::kNothing);
  CHECK(registry.counterpart(1, nullptr) == nullptr);
}
