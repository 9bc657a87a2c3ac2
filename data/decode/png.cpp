// SPDX-License-Identifier: Apache-2.0
// stb_image decodes; what it does not look at is checked here first: that the file begins with a
// real header, that the chunks before the pixels are undamaged, and how large the image says it is.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace {

// A small file can hold an endless stream of zeros. stb_image knows no limit, but asks here for
// memory.
thread_local std::size_t largest_allocation = 0;

void* bounded_malloc(std::size_t size) {
  return size > largest_allocation ? nullptr : std::malloc(size);
}
void* bounded_realloc(void* block, std::size_t size) {
  return size > largest_allocation ? nullptr : std::realloc(block, size);
}

/// Sets the limit of this thread for a scope.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t bytes) { largest_allocation = bytes; }
  ~AllocationLimit() { largest_allocation = 0; }
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#define STBI_MAX_DIMENSIONS (1 << 24)
#define STBI_MALLOC bounded_malloc
#define STBI_REALLOC bounded_realloc
#define STBI_FREE std::free
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace collar::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kSignature = 8;
constexpr int kGray = 0;
constexpr int kPalette = 3;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}

std::uint32_t crc32(Bytes bytes) {
  static constexpr auto kTable = make_crc_table();
  std::uint32_t crc = ~0u;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ byte) & 0xffu];
  return ~crc;
}

std::uint32_t big_endian(Bytes bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
         std::uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

struct Chunk {
  std::string_view type;
  Bytes data;
  std::size_t begin = 0;  ///< of its length field
  std::size_t end = 0;    ///< behind its checksum
};

/// The chunk at a position; nothing if the file ends before its length and type.
std::optional<Chunk> chunk_at(Bytes file, std::size_t at) {
  if (file.size() - at < 8) return std::nullopt;
  const std::size_t length = big_endian(file, at);
  const std::string_view type(reinterpret_cast<const char*>(file.data()) + at + 4, 4);
  const std::size_t left = file.size() - at - 8;
  if (left < length || left - length < 4) {
    throw DataError(
        fmt::format("the file is truncated in a chunk of {} bytes at byte {}", length, at));
  }
  return Chunk{type, file.subspan(at + 8, length), at, at + 8 + length + 4};
}

struct Header {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int bit_depth = 0;
  int colour_type = 0;
  std::optional<Chunk> palette;
};

/// Reads the header and looks at all chunks. Checksums count up to the first chunk of pixels, as in
/// Pillow.
Header check_chunks(Bytes file) {
  Header header;
  bool pixels_seen = false;
  std::size_t at = kSignature;
  while (const std::optional<Chunk> chunk = chunk_at(file, at)) {
    if (at == kSignature) {
      if (chunk->type != "IHDR" || chunk->data.size() < 13) {
        throw DataError("the first chunk is not a header");
      }
      header.width = big_endian(chunk->data, 0);
      header.height = big_endian(chunk->data, 4);
      header.bit_depth = chunk->data[8];
      header.colour_type = chunk->data[9];
    }
    pixels_seen |= chunk->type == "IDAT";
    if (!pixels_seen && crc32(file.subspan(chunk->begin + 4, 4 + chunk->data.size())) !=
                            big_endian(file, chunk->end - 4)) {
      throw DataError(fmt::format("the checksum of a chunk at byte {} is wrong", at));
    }
    if (chunk->type == "PLTE") header.palette = chunk;
    if (chunk->type == "IEND") break;
    at = chunk->end;
  }
  if (!pixels_seen) throw DataError("there are no pixels in it");
  return header;
}

/// The file with its palette filled up to 256 entries with black: stb_image reads entries that the
/// file lacks from memory it has not initialised.
std::vector<std::uint8_t> with_whole_palette(Bytes file, const Chunk& palette) {
  constexpr std::size_t kWhole = 256 * 3;
  std::vector<std::uint8_t> result(file.begin(), file.end());
  if (palette.data.size() >= kWhole) return result;
  const auto end_of_data = result.begin() + static_cast<std::ptrdiff_t>(palette.end) - 4;
  result.insert(end_of_data, kWhole - palette.data.size(), 0);
  result[palette.begin + 2] = kWhole >> 8;
  result[palette.begin + 3] = kWhole & 0xff;
  return result;
}

struct FreePixels {
  void operator()(void* pixels) const { std::free(pixels); }
};

template <typename Channel>
std::unique_ptr<Channel, FreePixels> decoded(Channel* pixels) {
  if (pixels == nullptr) throw DataError(stbi_failure_reason());
  return std::unique_ptr<Channel, FreePixels>(pixels);
}

Image decode_with_stb(Bytes file, ImageSize size, bool gray16) {
  Image image(size);
  const int length = static_cast<int>(file.size());
  int width = 0, height = 0, channels = 0;
  // The file's pixels as they are packed, twice for the doubling of buffers, and as they come out.
  constexpr std::size_t kSpare = std::size_t{1} << 20;
  const AllocationLimit limit(kSpare + 2 * file.size() +
                              16 * static_cast<std::size_t>(size.pixels()));
  if (gray16) {
    const auto pixels =
        decoded(stbi_load_16_from_memory(file.data(), length, &width, &height, &channels, 1));
    std::uint8_t* out = image.bytes().data();
    for (std::int64_t i = 0; i < size.pixels(); ++i, out += Image::kChannels) {
      const auto value = static_cast<std::uint8_t>(std::min<int>(pixels.get()[i], 255));
      std::fill_n(out, Image::kChannels, value);
    }
  } else {
    const auto pixels = decoded(
        stbi_load_from_memory(file.data(), length, &width, &height, &channels, Image::kChannels));
    std::memcpy(image.bytes().data(), pixels.get(), image.bytes().size());
  }
  return image;
}

}  // namespace

Image decode_png(Bytes bytes, const DecodeLimits& limits) {
  const Header header = check_chunks(bytes);
  check_image_size(header.width, header.height, limits);
  const ImageSize size{static_cast<int>(header.width), static_cast<int>(header.height)};
  if (header.colour_type == kPalette && header.palette) {
    return decode_with_stb(with_whole_palette(bytes, *header.palette), size, false);
  }
  return decode_with_stb(bytes, size, header.colour_type == kGray && header.bit_depth == 16);
}

}  // namespace collar::data
