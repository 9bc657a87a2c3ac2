// SPDX-License-Identifier: Apache-2.0
// PGM and PPM, as text (P2, P3) and in binary (P5, P6). The rules are those of Pillow's
// PpmImagePlugin; stb_image reads the binary ones only, without their scale, and does not see where
// a file ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kMostLevels = 65'535;

bool is_space(std::uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Reads a file from its third byte on. A "#" anywhere in text hides the rest of its line.
class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::uint8_t byte() { return bytes_[at_++]; }

  /// The next decimal number, and the white space behind it.
  int number() {
    std::optional<std::int64_t> value;
    while (left() > 0) {
      const std::uint8_t c = byte();
      if (c == '#') {
        skip_line();
      } else if (is_space(c)) {
        if (value) break;
      } else if (c < '0' || c > '9') {
        throw DataError(fmt::format("byte {} is not a digit", at_ - 1));
      } else {
        value = value.value_or(0) * 10 + (c - '0');
        if (*value > std::numeric_limits<int>::max()) {
          throw DataError(fmt::format("the number that ends at byte {} is too large", at_ - 1));
        }
      }
    }
    if (!value) throw DataError("the file is truncated");
    return static_cast<int>(*value);
  }

 private:
  void skip_line() {
    while (left() > 0) {
      const std::uint8_t c = byte();
      if (c == '\n' || c == '\r') break;
    }
  }

  Bytes bytes_;
  std::size_t at_ = 2;
};

}  // namespace

Image decode_pnm(Bytes bytes, const DecodeLimits& limits) {
  const bool plain = bytes[1] == '2' || bytes[1] == '3';
  const bool gray = bytes[1] == '2' || bytes[1] == '5';
  if (bytes.size() < 3 || !is_space(bytes[2])) throw DataError("the first word is not its kind");
  Reader reader(bytes);
  const int width = reader.number();
  const int height = reader.number();
  check_image_size(width, height, limits);
  const int levels = reader.number();
  if (levels < 1 || levels > kMostLevels) {
    throw DataError(fmt::format("the largest value is {}, expected 1 to {}", levels, kMostLevels));
  }

  const ImageSize size{width, height};
  const std::size_t channels = gray ? 1 : Image::kChannels;
  const std::size_t values = static_cast<std::size_t>(size.pixels()) * channels;
  const std::size_t least = plain ? 1 : levels < 256 ? 1 : 2;  // bytes a value takes
  if (reader.left() / least < values) {
    throw DataError(fmt::format("the file is truncated: {} values do not fit into it", values));
  }
  // Gray of more than 8 bits becomes 16 bits, and is then clipped like every 16-bit gray.
  const int largest = gray && levels > 255 ? kMostLevels : 255;
  Image image(size);
  std::uint8_t* out = image.bytes().data();
  for (std::size_t i = 0; i < values; ++i) {
    int value = 0;
    if (plain) {
      value = reader.number();
      if (value > levels) {
        throw DataError(fmt::format("a value of {} is above the largest, {}", value, levels));
      }
    } else {
      value = reader.byte();
      if (levels > 255) value = value << 8 | reader.byte();
    }
    const double scaled = std::nearbyint(static_cast<double>(value) / levels * largest);
    out = std::fill_n(out, Image::kChannels / channels,
                      static_cast<std::uint8_t>(std::min(scaled, 255.0)));
  }
  return image;
}

}  // namespace collar::data
