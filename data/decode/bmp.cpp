// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps, written out here because stb_image pads damaged ones with memory it has
// not initialised. The rules are those of Pillow's BmpImagePlugin.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

constexpr std::size_t kFileHeader = 14;
constexpr std::uint32_t kUncompressed = 0;
constexpr std::uint32_t kBitFields = 3;

std::uint32_t little_endian(Bytes bytes, std::size_t at, int count) {
  if (bytes.size() < at + static_cast<std::size_t>(count)) {
    throw DataError("the file is truncated in its header");
  }
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::uint32_t{bytes[at + static_cast<std::size_t>(i)]} << (8 * i);
  return value;
}

struct Header {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool top_down = false;
  int bits = 0;
  std::size_t palette_at = 0;
  std::size_t palette_entry = 4;  ///< bytes
  std::size_t colours = 0;
  std::size_t pixels_at = 0;
  std::array<std::uint32_t, 3> masks{};  ///< red, green, blue; zeros: the usual ones

  std::size_t row_bytes() const {
    return (static_cast<std::size_t>(width) * static_cast<std::size_t>(bits) + 31) / 32 * 4;
  }
};

Header read_header(Bytes file) {
  Header header;
  const std::size_t info = little_endian(file, kFileHeader, 4);
  header.pixels_at = little_endian(file, 10, 4);
  header.palette_at = kFileHeader + info;
  std::uint32_t compression = kUncompressed;
  if (info == 12) {
    header.width = little_endian(file, 18, 2);
    header.height = little_endian(file, 20, 2);
    header.bits = static_cast<int>(little_endian(file, 24, 2));
    header.palette_entry = 3;
  } else if (info == 40 || info == 52 || info == 56 || info == 64 || info == 108 || info == 124) {
    header.width = little_endian(file, 18, 4);
    const std::uint32_t height = little_endian(file, 22, 4);
    header.top_down = (height >> 24) == 0xff;
    header.height = header.top_down ? (std::int64_t{1} << 32) - height : height;
    header.bits = static_cast<int>(little_endian(file, 28, 2));
    compression = little_endian(file, 30, 4);
    header.colours = little_endian(file, 46, 4);
  } else {
    throw DataError(fmt::format("a header of {} bytes is unknown", info));
  }
  if (compression == kBitFields) {
    for (std::size_t i = 0; i < 3; ++i) header.masks[i] = little_endian(file, 54 + 4 * i, 4);
    if (info == 40) header.palette_at += 12;
  } else if (compression != kUncompressed) {
    throw DataError(fmt::format("compression {} cannot be read", compression));
  }
  constexpr std::array kDepths{1, 4, 8, 16, 24, 32};
  if (std::ranges::find(kDepths, header.bits) == kDepths.end()) {
    throw DataError(fmt::format("{} bits a pixel cannot be read", header.bits));
  }
  if (header.bits <= 8 && header.colours == 0) header.colours = std::size_t{1} << header.bits;
  return header;
}

/// Entries that the file lacks are black.
Palette read_palette(Bytes file, const Header& header) {
  Palette palette{};
  const std::size_t count = std::min<std::size_t>(header.colours, 256);
  if (header.palette_at + count * header.palette_entry > file.size()) {
    throw DataError("the file is truncated in its palette");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* entry = file.data() + header.palette_at + i * header.palette_entry;
    palette[i] = {entry[2], entry[1], entry[0]};
  }
  return palette;
}

void read_palette_row(const std::uint8_t* row, const Header& header, const Palette& palette,
                      std::uint8_t* rgb) {
  const std::int64_t in_a_byte = 8 / header.bits;
  const int mask = (1 << header.bits) - 1;
  for (std::int64_t x = 0; x < header.width; ++x, rgb += 3) {
    const auto shift = static_cast<int>((in_a_byte - 1 - x % in_a_byte) * header.bits);
    const int index = (row[x / in_a_byte] >> shift) & mask;
    std::copy_n(palette[static_cast<std::size_t>(index)].begin(), 3, rgb);
  }
}

/// Two bytes a pixel, five or six bits a channel.
void read_row16(const std::uint8_t* row, const Header& header, std::uint8_t* rgb) {
  const int green_bits = header.masks[1] == 0x7e0 ? 6 : 5;
  const int green_max = (1 << green_bits) - 1;
  for (std::int64_t x = 0; x < header.width; ++x, row += 2, rgb += 3) {
    const int pixel = row[0] | row[1] << 8;
    rgb[0] = static_cast<std::uint8_t>(((pixel >> (5 + green_bits)) & 31) * 255 / 31);
    rgb[1] = static_cast<std::uint8_t>(((pixel >> 5) & green_max) * 255 / green_max);
    rgb[2] = static_cast<std::uint8_t>((pixel & 31) * 255 / 31);
  }
}

/// Three or four bytes a pixel, a byte a channel.
void read_byte_row(const std::uint8_t* row, const Header& header, const std::array<int, 3>& place,
                   std::uint8_t* rgb) {
  const int step = header.bits / 8;
  for (std::int64_t x = 0; x < header.width; ++x, row += step, rgb += 3) {
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = row[place[c]];
  }
}

/// Which of a pixel's bytes holds red, green and blue.
std::array<int, 3> byte_places(const Header& header) {
  std::array<int, 3> places{2, 1, 0};
  if (header.masks == std::array<std::uint32_t, 3>{}) return places;
  for (std::size_t c = 0; c < 3; ++c) {
    int place = 0;
    while (place < header.bits / 8 && header.masks[c] != 0xffu << (8 * place)) ++place;
    if (place == header.bits / 8) {
      throw DataError(
          fmt::format("the bit mask {:#x} of a channel cannot be read", header.masks[c]));
    }
    places[c] = place;
  }
  return places;
}

void check_masks16(const Header& header) {
  using Masks = std::array<std::uint32_t, 3>;
  const Masks& masks = header.masks;
  if (masks != Masks{} && masks != Masks{0x7c00, 0x3e0, 0x1f} &&
      masks != Masks{0xf800, 0x7e0, 0x1f}) {
    throw DataError(fmt::format("the bit masks {:#x}, {:#x}, {:#x} cannot be read", masks[0],
                                masks[1], masks[2]));
  }
}

}  // namespace

Image decode_bmp(Bytes bytes, const DecodeLimits& limits) {
  Header header = read_header(bytes);
  check_image_size(header.width, header.height, limits);
  const Palette palette = header.bits <= 8 ? read_palette(bytes, header) : Palette{};
  if (header.bits <= 8 && header.pixels_at == kFileHeader + little_endian(bytes, kFileHeader, 4)) {
    header.pixels_at += 4 * header.colours;  // some writers forget that there is a palette
  }
  const std::array<int, 3> places = header.bits >= 24 ? byte_places(header) : std::array<int, 3>{};
  if (header.bits == 16) check_masks16(header);
  const std::size_t rows = static_cast<std::size_t>(header.height);
  if (header.pixels_at > bytes.size() ||
      (bytes.size() - header.pixels_at) / header.row_bytes() < rows) {
    throw DataError(fmt::format("the file is truncated: {} rows of {} bytes do not fit into it",
                                rows, header.row_bytes()));
  }
  Image image({static_cast<int>(header.width), static_cast<int>(header.height)});
  for (int y = 0; y < image.height(); ++y) {
    const std::uint8_t* row =
        bytes.data() + header.pixels_at + static_cast<std::size_t>(y) * header.row_bytes();
    std::uint8_t* rgb = image.row(header.top_down ? y : image.height() - 1 - y);
    if (header.bits <= 8) {
      read_palette_row(row, header, palette, rgb);
    } else if (header.bits == 16) {
      read_row16(row, header, rgb);
    } else {
      read_byte_row(row, header, places, rgb);
    }
  }
  return image;
}

}  // namespace collar::data
