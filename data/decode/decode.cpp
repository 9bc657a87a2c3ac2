// SPDX-License-Identifier: Apache-2.0
#include "data/decode/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/decode/file.hpp"
#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

struct Format {
  std::string_view name;
  std::string_view magic;                       ///< the first bytes; '?' stands for any byte
  Image (*decode)(Bytes, const DecodeLimits&);  ///< null: recognised, not read
};

constexpr std::array kFormats{
    Format{"JPEG", "\xff\xd8\xff", decode_jpeg},
    Format{"PNG", "\x89PNG\r\n\x1a\n", decode_png},
    Format{"BMP", "BM", decode_bmp},
    Format{"GIF", "GIF87a", decode_gif},
    Format{"GIF", "GIF89a", decode_gif},
    Format{"PGM", "P2", decode_pnm},
    Format{"PGM", "P5", decode_pnm},
    Format{"PPM", "P3", decode_pnm},
    Format{"PPM", "P6", decode_pnm},
    Format{"PBM", "P1", nullptr},
    Format{"PBM", "P4", nullptr},
    Format{"WebP", "RIFF????WEBP", nullptr},
    Format{"TIFF", std::string_view("II*\0", 4), nullptr},
    Format{"TIFF", std::string_view("MM\0*", 4), nullptr},
    Format{"AVIF/HEIF", "????ftyp", nullptr},
};

bool begins_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(), [](char wanted, std::uint8_t found) {
           return wanted == '?' || static_cast<std::uint8_t>(wanted) == found;
         });
}

const Format* find_format(Bytes bytes) {
  const auto found = std::ranges::find_if(
      kFormats, [bytes](const Format& format) { return begins_with(bytes, format.magic); });
  return found == kFormats.end() ? nullptr : &*found;
}

/// Up to eight bytes as hexadecimal digits, for a message about a file of no known format.
std::string first_bytes(Bytes bytes) {
  return fmt::format("{:02x}", fmt::join(bytes.first(std::min<std::size_t>(bytes.size(), 8)), " "));
}

}  // namespace

std::string_view image_format(Bytes bytes) {
  const Format* format = find_format(bytes);
  return format == nullptr ? std::string_view{} : format->name;
}

Image decode_image(Bytes bytes, std::string_view name, const DecodeLimits& limits) {
  if (bytes.empty()) throw DataError(fmt::format("{}: the file is empty", name));
  const Format* format = find_format(bytes);
  if (format == nullptr) {
    throw DataError(fmt::format("{}: not an image of a known format (it begins with {})", name,
                                first_bytes(bytes)));
  }
  if (format->decode == nullptr) {
    throw DataError(
        fmt::format("{}: {} images cannot be read; convert it to PNG or JPEG", name, format->name));
  }
  try {
    return format->decode(bytes, limits);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}: {}", name, format->name, error.what()));
  }
}

Image load_image(const std::filesystem::path& path, const DecodeLimits& limits) {
  const FileBytes file = read_file(path, limits.file_bytes);
  return decode_image(file.bytes(), path.native(), limits);
}

void check_image_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits) {
  if (width <= 0 || height <= 0) {
    throw DataError(fmt::format("the header says {} x {} pixels", width, height));
  }
  if (std::max(width, height) > limits.side || width * height > limits.pixels) {
    throw DataError(
        fmt::format("{} x {} pixels are too many: the limit is {} in all and {} on a side", width,
                    height, limits.pixels, limits.side));
  }
}

}  // namespace collar::data
