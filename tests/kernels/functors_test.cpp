// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one element: known answers.
#include "kernels/functors.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace collar::kernels;

TEST_CASE("lerp starts from the nearer end, as torch.lerp does") {
  CHECK(lerp(1.0f, 3.0f, 0.25f) == 1.5f);
  CHECK(lerp(1.0f, 3.0f, 1.0f) == 3.0f);
  // From the far end, 1e8 + 1 * (1 - 1e8) would lose the 1.
  CHECK(lerp(1e8f, 1.0f, 1.0f) == 1.0f);
}

TEST_CASE("moments of two sets merge to those of their union") {
  const std::vector<double> values{3, 1, 4, 1, 5, 9, 2, 6};
  const auto moments = [&](std::size_t begin, std::size_t end, double& mean, double& m2) {
    mean = m2 = 0;
    for (std::size_t i = begin; i < end; ++i) mean += values[i] / static_cast<double>(end - begin);
    for (std::size_t i = begin; i < end; ++i) m2 += (values[i] - mean) * (values[i] - mean);
  };
  double mean = 0, m2 = 0, other_mean = 0, other_m2 = 0, all_mean = 0, all_m2 = 0;
  moments(0, 3, mean, m2);
  moments(3, 8, other_mean, other_m2);
  moments(0, 8, all_mean, all_m2);
  MomentsMerge(3, 5)(mean, m2, other_mean, other_m2);
  CHECK(mean == Approx(all_mean));
  CHECK(m2 == Approx(all_m2));

  mean = m2 = 0;
  MomentsMerge(0, 5)(mean, m2, other_mean, other_m2);
  CHECK(mean == other_mean);
  CHECK(m2 == other_m2);
}

TEST_CASE("Philox gives the published known answers") {  // Random123 1.14, kat_vectors
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the words of a dropout mask are those of its documented Philox blocks") {
  const DropoutKey key{
      .seed = 0x123456789abcdef0, .step = 0x100000002, .rank = 3, .micro = 4, .layer = 5};
  const PhiloxCounter mixed = philox4x32_10({2, 1, 3, 4}, {0x9abcdef0, 0x12345678 ^ 0x64726f70});
  const PhiloxCounter wanted = philox4x32_10({7, 1, 5, mixed[2]}, {mixed[0], mixed[1]});
  CHECK(DropoutStream(key).words((std::uint64_t{1} << 32) + 7) == wanted);
  // Masks that have been published stay what they were.
  CHECK(DropoutStream(DropoutKey{}).words(0) ==
        PhiloxCounter{0x93458c46, 0xa7671b1a, 0x4f342170, 0xf5e77e1f});
}
