// SPDX-License-Identifier: Apache-2.0
// One decoder a format, behind decode_image(). Each gets bytes that begin like its format and
// throws DataError with the reason alone; decode_image() adds the file and the format.
#pragma once

#include <cstdint>
#include <span>

#include "data/decode/decode.hpp"

namespace collar::data {

/// libjpeg-turbo with its defaults (ISLOW DCT, fancy upsampling), as Pillow uses it: gray is
/// replicated, CMYK and YCCK go through Pillow's CMYK arithmetic, damage that libjpeg repairs is
/// accepted, a file that ends too early is not.
Image decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeLimits& limits);

/// All colour types and bit depths, interlaced or not, after a check of the chunks that stb_image
/// leaves out.
Image decode_png(std::span<const std::uint8_t> bytes, const DecodeLimits& limits);

/// Uncompressed bitmaps of 1, 4, 8, 16, 24 and 32 bits.
Image decode_bmp(std::span<const std::uint8_t> bytes, const DecodeLimits& limits);

/// The first frame.
Image decode_gif(std::span<const std::uint8_t> bytes, const DecodeLimits& limits);

/// PGM and PPM, as text and in binary, of any largest value.
Image decode_pnm(std::span<const std::uint8_t> bytes, const DecodeLimits& limits);

/// Throws DataError if an image of this size has no pixels or more than the limits.
void check_image_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits);

}  // namespace collar::data
