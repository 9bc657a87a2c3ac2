// SPDX-License-Identifier: Apache-2.0
// Damaged files: whatever the bytes are, decoding ends with an image or a DataError, and takes no
// more memory than the limits allow.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "data/decode/decode.hpp"
#include "data/decode/file.hpp"
#include "engine/random.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/effort.hpp"

using namespace collar;

namespace {

constexpr data::DecodeLimits kLimits{.pixels = 1'000'000};

const char* const kFiles[] = {"jpeg-subsampling-420.jpg",
                              "jpeg-progressive-cat-420.jpg",
                              "jpeg-arithmetic-testimgari.jpg",
                              "jpeg-ycck-subsampled-2x2.jpg",
                              "jpeg-odd-1x1-gray.jpg",
                              "png-interlaced-basi3p04.png",
                              "png-plain-basn6a16.png",
                              "png-plain-basn0g16.png",
                              "png-transparent-palette-tbbn3p08.png",
                              "bmp-rgb16-565.bmp",
                              "bmp-pal8topdown.bmp",
                              "gif-interlaced.gif",
                              "wrong-extension-gif.jpg",
                              "pnm-ascii-colors.ppm",
                              "wrong-extension-bmp.jpg"};

int rounds() {
  return test::rounds(60, 4'000);
}

/// True if it is still an image.
bool decode(std::span<const std::uint8_t> bytes) {
  try {
    const data::Image image = data::decode_image(bytes, "damaged", kLimits);
    if (image.size().pixels() < 1 || image.size().pixels() > kLimits.pixels)
      FAIL("a size beyond the limits");
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void put_big_endian(std::vector<std::uint8_t>& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// Bits as deflate orders them: from the lowest of each byte.
class BitWriter {
 public:
  void put(unsigned bits, int count) {
    for (int i = 0; i < count; ++i, ++used_) {
      if (used_ % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | ((bits >> i) & 1u) << (used_ % 8));
    }
  }
  std::vector<std::uint8_t> bytes;

 private:
  int used_ = 0;
};

}  // namespace

TEST_CASE("Truncated images are decoded or refused") {
  REQUIRE_SHARED(folder, "data/odd-images");
  for (const char* file : kFiles) {
    const data::FileBytes bytes = data::read_file(folder / file, 1 << 20);
    REQUIRE(decode(bytes.bytes()));
    const std::size_t step =
        std::max<std::size_t>(1, bytes.size / static_cast<std::size_t>(rounds()));
    int images = 0;
    for (std::size_t length = 1; length < bytes.size; length += step) {
      // A copy of its own, so that reading beyond the end is seen by sanitizers.
      const std::vector<std::uint8_t> prefix(bytes.data.get(), bytes.data.get() + length);
      images += decode(prefix);
    }
    INFO(file);
    CHECK(images <= 3);  // only bytes behind the pixels may be missing
  }
}

TEST_CASE("Images with wrong bits are decoded or refused") {
  REQUIRE_SHARED(folder, "data/odd-images");
  for (const char* file : kFiles) {
    const data::FileBytes original = data::read_file(folder / file, 1 << 20);
    RandomStream random({.seed = 1, .purpose = Purpose::test});
    int images = 0;
    for (int round = 0; round < rounds(); ++round) {
      std::vector<std::uint8_t> bytes(original.data.get(), original.data.get() + original.size);
      // Half of the time only in the first bytes, where the headers are.
      const auto range = static_cast<std::uint32_t>(
          round % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 600));
      for (std::uint32_t flips = 1 + random.below(4); flips > 0; --flips) {
        bytes[random.below(range)] ^= static_cast<std::uint8_t>(1u << random.below(8));
      }
      images += decode(bytes);
    }
    INFO(file);
    CHECK(images > 0);
    CHECK(images < rounds());
  }
}

TEST_CASE("A stream of zeros without end does not take all memory") {
  BitWriter deflated;
  deflated.put(0x0178, 16);     // zlib header
  deflated.put(0b011, 3);       // the last block, with the fixed code
  deflated.put(0b00001100, 8);  // a zero
  for (int i = 0; i < 40'000; ++i)
    deflated.put(0b0000010100011, 13);  // 258 times the byte before: 10 MB
  std::vector<std::uint8_t> png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13};
  for (const char c : {'I', 'H', 'D', 'R'}) png.push_back(static_cast<std::uint8_t>(c));
  put_big_endian(png, 8);
  put_big_endian(png, 8);
  png.insert(png.end(), {8, 0, 0, 0, 0});
  put_big_endian(png, 0xE164E157);  // its checksum
  put_big_endian(png, static_cast<std::uint32_t>(deflated.bytes.size()));
  for (const char c : {'I', 'D', 'A', 'T'}) png.push_back(static_cast<std::uint8_t>(c));
  png.insert(png.end(), deflated.bytes.begin(), deflated.bytes.end());
  put_big_endian(png, 0);  // a checksum of pixels does not count
  put_big_endian(png, 0);
  for (const char c : {'I', 'E', 'N', 'D'}) png.push_back(static_cast<std::uint8_t>(c));
  put_big_endian(png, 0xAE426082);
  CHECK_THROWS_WITH(data::decode_image(png, "zeros.png"),
                    Catch::Contains("zeros.png: PNG: Out of memory"));
}

TEST_CASE("Paths that are no files are refused at once") {
  const test::TemporaryDirectory folder;
  const auto path = [&](const char* name) { return folder.path() / name; };
  std::filesystem::create_directory(path("folder.jpg"));
  REQUIRE(::mkfifo(path("pipe.jpg").c_str(), 0600) == 0);
  std::ofstream(path("empty.jpg")).flush();
  std::ofstream(path("large.jpg")) << std::string(1000, 'x');
  using Catch::Contains;
  CHECK_THROWS_WITH(data::load_image(path("folder.jpg")), Contains("folder.jpg: a folder"));
  CHECK_THROWS_WITH(data::load_image(path("pipe.jpg")), Contains("pipe.jpg: a pipe"));
  CHECK_THROWS_WITH(data::load_image(path("empty.jpg")), Contains("empty.jpg: the file is empty"));
  CHECK_THROWS_WITH(data::load_image(path("missing.jpg")), Contains("missing.jpg: No such file"));
  CHECK_THROWS_WITH(data::load_image(path("large.jpg"), {.file_bytes = 999}),
                    Contains("1000 bytes are more than the limit of 999"));
  CHECK_THROWS_WITH(data::load_image(path("large.jpg")),
                    Contains("it begins with 78 78 78 78 78 78 78 78"));
}
