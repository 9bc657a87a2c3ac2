// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/image.hpp"
#include "tests/support/isas.hpp"

using namespace collar;

TEST_CASE("Weighted sums of rows of bytes are the same on every instruction set") {
  constexpr std::int64_t kStride = 150;
  constexpr int kTaps = 5;
  std::vector<std::uint8_t> rows(kStride * kTaps);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i * i + 7 * i);
  // Overshooting on both sides, as bicubic weights do; they add up to 1.
  const std::vector<std::int32_t> weights{-900'000, 2'600'001, 3'000'000, -605'697, 100'000};
  for (std::int64_t n = 1; n <= kStride; ++n) {
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::int64_t sum = 1 << (kernels::kWeightBits - 1);
      for (std::size_t t = 0; t < kTaps; ++t) sum += rows[t * kStride + i] * weights[t];
      const std::int64_t rounded = sum >> kernels::kWeightBits;
      expected[i] = static_cast<std::uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
    }
    for (const Isa isa : test::isas_here()) {
      std::vector<std::uint8_t> out(expected.size());
      kernels::weighted_rows(isa, rows.data(), kStride, weights.data(), kTaps, n, out.data());
      REQUIRE(out == expected);
    }
  }
}
