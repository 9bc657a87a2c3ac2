// SPDX-License-Identifier: Apache-2.0
#include "engine/io/crc32c.hpp"

#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "engine/random.hpp"

using namespace collar;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> noise(std::size_t size) {
  RandomStream stream({.seed = size});
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(stream.next_u32());
  return bytes;
}

}  // namespace

TEST_CASE("CRC-32C has its published values") {
  for (const auto& crc : {crc32c, crc32c_portable}) {
    CHECK(crc(bytes_of("123456789"), 0) == 0xe3069283u);
    CHECK(crc({}, 0) == 0u);
    // RFC 3720, B.4
    std::vector<std::byte> block(32);
    CHECK(crc(block, 0) == 0x8a9136aau);
    for (std::byte& byte : block) byte = std::byte{0xff};
    CHECK(crc(block, 0) == 0x62a8ab43u);
    for (std::size_t i = 0; i < 32; ++i) block[i] = static_cast<std::byte>(i);
    CHECK(crc(block, 0) == 0x46dd794eu);
    for (std::size_t i = 0; i < 32; ++i) block[i] = static_cast<std::byte>(31 - i);
    CHECK(crc(block, 0) == 0x113fdb5cu);
  }
}

TEST_CASE("The CPU's CRC-32C and the tables agree at every size and alignment") {
  const std::vector<std::byte> bytes = noise(40'000);
  const std::span<const std::byte> all(bytes);
  for (const std::size_t size :
       {0, 1, 7, 8, 9, 767, 768, 769, 2000, 12'287, 12'288, 12'289, 39'000})
    for (std::size_t begin = 0; begin < 9; ++begin) {
      const auto part = all.subspan(begin, size);
      CHECK(crc32c(part) == crc32c_portable(part));
    }
}

TEST_CASE("CRC-32C of pieces is the CRC-32C of the whole") {
  const std::vector<std::byte> bytes = noise(30'000);
  const std::span<const std::byte> all(bytes);
  const std::uint32_t whole = crc32c(all);
  for (const std::size_t cut : {0, 1, 5, 4096, 13'000, 29'999, 30'000}) {
    CHECK(crc32c(all.subspan(cut), crc32c(all.first(cut))) == whole);
    CHECK(crc32c_portable(all.subspan(cut), crc32c_portable(all.first(cut))) == whole);
  }
}
