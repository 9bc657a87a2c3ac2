// SPDX-License-Identifier: Apache-2.0
#include "engine/io/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace collar {
namespace {

// A checksum is a polynomial modulo P over GF(2), the coefficient of x^31 in bit 0.
constexpr std::uint32_t kPolynomial = 0x82f63b78u;
constexpr std::uint32_t kOne = 0x80000000u;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1u) != 0 ? kPolynomial : 0u);
}

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

using Table = std::array<std::uint32_t, 256>;

/// Entry [k][b]: the checksum of byte b followed by k zero bytes.
constexpr std::array<Table, 8> make_slices() {
  std::array<Table, 8> slices{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (Table& slice : slices) {
      for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
      slice[b] = crc;
    }
  }
  return slices;
}
constexpr std::array<Table, 8> kSlices = make_slices();

std::uint32_t step(std::uint32_t crc, std::byte byte) {
  return (crc >> 8) ^ kSlices[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xffu];
}

std::uint32_t load_u32(const std::byte* bytes) {
  return std::to_integer<std::uint32_t>(bytes[0]) | std::to_integer<std::uint32_t>(bytes[1]) << 8 |
         std::to_integer<std::uint32_t>(bytes[2]) << 16 |
         std::to_integer<std::uint32_t>(bytes[3]) << 24;
}

#if defined(__x86_64__)

/// What a checksum becomes when `Bytes` zero bytes follow: one table for each of its own bytes.
template <std::size_t Bytes>
struct Shift {
  static constexpr std::array<Table, 4> make() {
    std::uint32_t power = kOne;
    for (std::size_t i = 0; i < 8 * Bytes; ++i) power = times_x(power);
    std::array<Table, 4> tables{};
    for (std::uint32_t k = 0; k < 4; ++k)
      for (std::uint32_t b = 0; b < 256; ++b) tables[k][b] = multiply(power, b << (8 * k));
    return tables;
  }
  static constexpr std::array<Table, 4> kTables = make();

  static std::uint32_t apply(std::uint32_t crc) {
    return kTables[0][crc & 0xffu] ^ kTables[1][(crc >> 8) & 0xffu] ^
           kTables[2][(crc >> 16) & 0xffu] ^ kTables[3][crc >> 24];
  }
};

std::uint64_t load_u64(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// The instruction takes three cycles and a new one can start each cycle: three blocks side by side
/// keep it busy.
template <std::size_t Block>
[[gnu::target("sse4.2")]] std::uint64_t three_blocks(std::uint64_t crc,
                                                     std::span<const std::byte>& bytes) {
  while (bytes.size() >= 3 * Block) {
    const std::byte* data = bytes.data();
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < Block; i += 8) {
      crc = _mm_crc32_u64(crc, load_u64(data + i));
      second = _mm_crc32_u64(second, load_u64(data + Block + i));
      third = _mm_crc32_u64(third, load_u64(data + 2 * Block + i));
    }
    crc = Shift<Block>::apply(static_cast<std::uint32_t>(crc)) ^ second;
    crc = Shift<Block>::apply(static_cast<std::uint32_t>(crc)) ^ third;
    bytes = bytes.subspan(3 * Block);
  }
  return crc;
}

[[gnu::target("sse4.2")]] std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                     std::uint32_t before) {
  std::uint64_t crc = ~before;
  crc = three_blocks<4096>(crc, bytes);
  crc = three_blocks<256>(crc, bytes);
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    crc = _mm_crc32_u64(crc, load_u64(bytes.data()));
  std::uint32_t low = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : bytes) low = _mm_crc32_u8(low, std::to_integer<unsigned char>(byte));
  return ~low;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint32_t low = crc ^ load_u32(bytes.data());
    const std::uint32_t high = load_u32(bytes.data() + 4);
    crc = kSlices[7][low & 0xffu] ^ kSlices[6][(low >> 8) & 0xffu] ^
          kSlices[5][(low >> 16) & 0xffu] ^ kSlices[4][low >> 24] ^ kSlices[3][high & 0xffu] ^
          kSlices[2][(high >> 8) & 0xffu] ^ kSlices[1][(high >> 16) & 0xffu] ^
          kSlices[0][high >> 24];
  }
  for (const std::byte byte : bytes) crc = step(crc, byte);
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(bytes, before);
#endif
  return crc32c_portable(bytes, before);
}

}  // namespace collar
