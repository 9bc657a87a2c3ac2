// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104): what a job token is proved with and bytes are
// compared by. Written out here because a whole cryptographic library for one hash would be the
// larger risk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace collar {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text) { return update(std::as_bytes(std::span(text))); }
  /// The digest of everything so far. The object is used up.
  Digest finish();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, 64> pending_{};
  std::uint64_t length_ = 0;
};

Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::span<const std::byte> message);

/// Whether both are equal, in a time that does not depend on where they differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

/// 64 hexadecimal digits.
std::string to_hex(const Digest& digest);

}  // namespace collar
