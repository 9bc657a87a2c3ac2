// SPDX-License-Identifier: Apache-2.0
// Arithmetic on decoded images: resampling, and the way to the floats of a network's input. Called
// by the workers of a loader: on the calling thread, without a context.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/runtime/isa.hpp"

namespace collar::kernels {

/// How a byte becomes a number in [0, 1]; 126 of the 256 results differ in the last bit.
enum class ByteScaling : std::uint8_t {
  multiply,  ///< byte * float(1/255): torchvision's v2.ToDtype(float32, scale=True)
  divide     ///< byte / 255: torchvision's ToTensor
};

/// What each byte of each of three channels becomes: every possible result of scaling and
/// normalising, computed once in the order of PyTorch's operations, (scaled - mean) / deviation in
/// float with a rounding each.
class PixelTable {
 public:
  /// Scaling alone.
  explicit PixelTable(ByteScaling scaling);
  PixelTable(ByteScaling scaling, const std::array<float, 3>& mean,
             const std::array<float, 3>& deviation);

  const std::array<float, 256>& channel(std::size_t c) const { return values_[c]; }

 private:
  std::array<std::array<float, 256>, 3> values_;
};

/// planes [3, height, width] = table of pixels [height, width, 3]; with `flip`, each row is written
/// from its right end.
void image_to_planes(const std::uint8_t* pixels, std::int64_t height, std::int64_t width, bool flip,
                     const PixelTable& table, float* planes);

/// Bits behind the point of a weight of weighted_rows().
inline constexpr int kWeightBits = 22;

/// One output row of a resampling pass, as Pillow computes it: for i < n,
/// out[i] = clamp((sum over t < taps of weights[t] * rows[t * stride + i] + 2^21) >> 22) to 0 …
/// 255. The sum has to fit into 32 bits. Every instruction set gives the same bytes.
void weighted_rows(Isa isa, const std::uint8_t* rows, std::int64_t stride,
                   const std::int32_t* weights, int taps, std::int64_t n, std::uint8_t* out);

}  // namespace collar::kernels
