// SPDX-License-Identifier: Apache-2.0
// The frames between Store and StoreServer, after the handshake: one request, one reply.
//   request  u32 length of the rest | u8 command | u32 milliseconds | u32 key length | key | value
//            (goodbye, before a client closes on purpose, has no reply)
//   reply    u32 length of the rest | u8 status | value, or the reason of a refusal
// Little-endian. Lengths beyond StoreLimits end the connection before anything is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace collar::comm::store_protocol {

enum class Command : std::uint8_t { set = 1, get = 2, add = 3, goodbye = 4 };
enum class Status : std::uint8_t { ok = 0, not_there_in_time = 1, refused = 2, rank_gone = 3 };

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kRequestHeaderBytes = 9;  // command, milliseconds, key length

inline std::uint32_t read_u32(const std::byte* from) {
  std::uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void write_u32(std::byte* to, std::size_t value) {
  const auto narrow = static_cast<std::uint32_t>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}

}  // namespace collar::comm::store_protocol
