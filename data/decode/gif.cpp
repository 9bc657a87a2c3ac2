// SPDX-License-Identifier: Apache-2.0
// The first frame of a GIF. The rules are those of Pillow's GifImagePlugin: stb_image leaves
// transparent pixels black, fills what the frame leaves free with another colour, and takes a file
// that ends too early for a whole one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

constexpr std::uint8_t kExtension = '!';
constexpr std::uint8_t kFrame = ',';
constexpr std::uint8_t kTrailer = ';';
constexpr std::uint8_t kGraphicControl = 0xf9;
constexpr std::uint8_t kHasPalette = 0x80;
constexpr std::uint8_t kInterlaced = 0x40;
constexpr std::uint8_t kTransparent = 0x01;

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  Bytes take(std::size_t count) {
    if (bytes_.size() - at_ < count) throw DataError("the file is truncated");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  std::uint8_t byte() { return take(1)[0]; }
  int u16() {
    const Bytes pair = take(2);
    return pair[0] | pair[1] << 8;
  }
  /// A block of data: its length, then as many bytes. An empty one ends a sequence of blocks.
  Bytes block() { return take(byte()); }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
};

/// Index i is the gray i.
Palette gray_ramp() {
  Palette palette{};
  for (std::size_t i = 0; i < palette.size(); ++i) palette[i].fill(static_cast<std::uint8_t>(i));
  return palette;
}

/// Entries the file lacks are black; but a table that is the beginning of a gray ramp is all of it.
Palette read_palette(Reader& reader, std::uint8_t flags) {
  const std::size_t count = std::size_t{2} << (flags & 7);
  Palette palette{};
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(reader.take(3).begin(), 3, palette[i].begin());
  const Palette ramp = gray_ramp();
  return std::equal(ramp.begin(), ramp.begin() + static_cast<std::ptrdiff_t>(count),
                    palette.begin())
             ? ramp
             : palette;
}

struct Frame {
  int left = 0;
  int top = 0;
  ImageSize size{};
  bool interlaced = false;
  Palette palette{};
  std::uint8_t transparent = 0;  ///< the index of what the frame leaves free
};

/// Passes over the extensions to the first frame and reads what stands before its pixels.
Frame read_frame(Reader& reader, const Palette& palette) {
  Frame frame{.palette = palette};
  for (std::uint8_t kind = reader.byte(); kind != kFrame; kind = reader.byte()) {
    if (kind == kTrailer) throw DataError("there is no frame in it");
    if (kind != kExtension) continue;
    const bool control = reader.byte() == kGraphicControl;
    for (Bytes block = reader.block(); !block.empty(); block = reader.block()) {
      if (control && block.size() >= 4 && (block[0] & kTransparent) != 0) {
        frame.transparent = block[3];
      }
    }
  }
  frame.left = reader.u16();
  frame.top = reader.u16();
  frame.size.width = reader.u16();
  frame.size.height = reader.u16();
  const std::uint8_t flags = reader.byte();
  frame.interlaced = (flags & kInterlaced) != 0;
  if ((flags & kHasPalette) != 0) frame.palette = read_palette(reader, flags);
  return frame;
}

/// Codes of 2 to 12 bits, lowest bits first, out of a sequence of blocks.
class CodeReader {
 public:
  explicit CodeReader(Reader& reader) : reader_(reader) {}

  /// Nothing at the end of the sequence.
  std::optional<unsigned> next(int bits) {
    for (; count_ < bits; count_ += 8) {
      if (block_.empty()) block_ = reader_.block();
      if (block_.empty()) return std::nullopt;
      buffer_ |= unsigned{block_[0]} << count_;
      block_ = block_.subspan(1);
    }
    const unsigned code = buffer_ & ((1u << bits) - 1);
    buffer_ >>= bits;
    count_ -= bits;
    return code;
  }

 private:
  Reader& reader_;
  Bytes block_;
  unsigned buffer_ = 0;
  int count_ = 0;  ///< bits in the buffer
};

/// The colours of a frame go to their places, row by row, interlaced or not.
class FrameWriter {
 public:
  FrameWriter(Image& image, const Frame& frame)
      : image_(image), frame_(frame), step_(frame.interlaced ? 8 : 1) {}

  bool full() const { return y_ >= frame_.size.height; }

  void put(std::uint8_t index) {
    std::uint8_t* pixel =
        image_.row(frame_.top + y_) + std::ptrdiff_t{frame_.left + x_} * Image::kChannels;
    std::copy_n(frame_.palette[index].begin(), Image::kChannels, pixel);
    if (++x_ < frame_.size.width) return;
    x_ = 0;
    y_ += step_;
    while (full() && frame_.interlaced && pass_ < 3) {
      constexpr std::array kFirst{4, 2, 1};
      y_ = kFirst[pass_];
      step_ = 2 * y_;
      ++pass_;
    }
  }

 private:
  Image& image_;
  const Frame& frame_;
  int x_ = 0;
  int y_ = 0;
  int step_;
  std::size_t pass_ = 0;
};

/// Lempel, Ziv and Welch: a code above the end code is the string of an earlier code and one byte.
void decode_pixels(Reader& reader, FrameWriter& out) {
  constexpr std::size_t kTable = 4096;
  const int bits = reader.byte();
  if (bits < 1 || bits > 8) throw DataError(fmt::format("codes of {} bits are unknown", bits));
  const unsigned clear = 1u << bits;
  const unsigned end = clear + 1;

  std::array<std::uint16_t, kTable> prefix{};
  std::array<std::uint8_t, kTable> last{};
  std::array<std::uint8_t, kTable + 1> text{};
  CodeReader codes(reader);
  int code_bits = bits + 1;
  unsigned next = end + 1;
  unsigned previous = clear;  // clear: there is none
  std::uint8_t first = 0;     ///< of the previous string
  while (!out.full()) {
    const std::optional<unsigned> code = codes.next(code_bits);
    if (!code || *code == end) throw DataError("it ends before its last pixel");
    if (*code == clear) {
      code_bits = bits + 1;
      next = end + 1;
      previous = clear;
      continue;
    }
    if (*code > (previous == clear ? clear : next)) {
      throw DataError(fmt::format("code {} is not known yet", *code));
    }
    std::size_t begin = text.size();
    unsigned rest = *code;
    if (rest == next) {  // the string to be added now: the previous one and its own first byte
      text[--begin] = first;
      rest = previous;
    }
    for (; rest > clear; rest = prefix[rest]) text[--begin] = last[rest];
    text[--begin] = first = static_cast<std::uint8_t>(rest);
    if (previous != clear && next < kTable) {
      prefix[next] = static_cast<std::uint16_t>(previous);
      last[next] = first;
      if (++next == 1u << code_bits && code_bits < 12) ++code_bits;
    }
    previous = *code;
    for (; begin < text.size() && !out.full(); ++begin) out.put(text[begin]);
  }
}

}  // namespace

Image decode_gif(Bytes bytes, const DecodeLimits& limits) {
  Reader reader(bytes);
  reader.take(6);  // "GIF87a" or "GIF89a"
  ImageSize size{};
  size.width = reader.u16();
  size.height = reader.u16();
  const std::uint8_t flags = reader.byte();
  reader.take(2);  // the background's index and the pixels' shape do not count
  const Palette palette = (flags & kHasPalette) != 0 ? read_palette(reader, flags) : gray_ramp();
  const Frame frame = read_frame(reader, palette);

  // A frame that is larger than the screen widens it.
  size.width = std::max(size.width, frame.left + frame.size.width);
  size.height = std::max(size.height, frame.top + frame.size.height);
  check_image_size(size.width, size.height, limits);
  if (frame.size.pixels() == 0) throw DataError("its frame has no pixels");
  Image image(size);
  for (std::size_t i = 0; i < image.bytes().size(); ++i) {
    image.bytes()[i] = frame.palette[frame.transparent][i % Image::kChannels];
  }
  FrameWriter writer(image, frame);
  decode_pixels(reader, writer);
  return image;
}

}  // namespace collar::data
