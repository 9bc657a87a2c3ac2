// SPDX-License-Identifier: Apache-2.0
// From the bytes of a file to an Image. The format is told by the first bytes, never by the name;
// what Pillow refuses is refused. Decoding is a pure function and may run on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "data/decode/image.hpp"

namespace collar::data {

/// What a file may ask for; checked before memory is taken for it.
struct DecodeLimits {
  std::int64_t pixels = 89'478'485;  ///< where Pillow begins to speak of bombs
  std::int64_t side = 65'535;        ///< pixels of the longer edge
  std::size_t file_bytes = std::size_t{1} << 28;
};

/// "JPEG", "PNG", "BMP", "GIF", "PGM", "PPM"; also of formats that are recognised but not read
/// ("WebP", "TIFF", …). Empty if these bytes begin no known image format.
std::string_view image_format(std::span<const std::uint8_t> bytes);

/// The pixels as Pillow's `Image.open(…).convert("RGB")` gives them: EXIF orientation is not
/// applied, alpha is dropped without compositing, 16-bit gray is clipped at 255, colour profiles
/// are ignored, an animation is its first frame. Throws DataError with `name`, the format and the
/// reason.
Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                   const DecodeLimits& limits = {});

/// Reads and decodes one file. Directories, pipes, devices and empty files are refused at once.
Image load_image(const std::filesystem::path& path, const DecodeLimits& limits = {});

}  // namespace collar::data
