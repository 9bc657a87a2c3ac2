// SPDX-License-Identifier: Apache-2.0
// How two processes of a job recognise each other before anything else is said: a greeting with
// magic and version, then a proof each way that both know the job token, which itself is never
// sent. Used for the store and between ranks.
//
//   client -> server  Greeting   (magic, version, purpose, rank, world, nonce)
//   server -> client  Challenge  (magic, version, nonce)
//   client -> server  HMAC-SHA256(token, "client" | greeting | challenge)
//   server -> client  Verdict    (accepted or a reason; HMAC-SHA256(token, "server" | greeting |
//   challenge))
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/rendezvous/deadline.hpp"
#include "engine/io/sha256.hpp"

namespace collar::comm {

inline constexpr std::uint16_t kProtocolVersion = 1;

using Nonce = std::array<std::byte, 32>;

enum class Purpose : std::uint16_t { store = 1, peer = 2 };

// The wire format: little-endian, no padding, fixed sizes, so that every version can read every
// other's greeting.
struct Greeting {
  std::array<char, 8> magic{'C', 'O', 'L', 'L', 'A', 'R', '-', 'C'};
  std::uint16_t version = kProtocolVersion;
  Purpose purpose = Purpose::store;
  std::uint32_t byte_order = 0x01020304;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::uint64_t reserved = 0;
  Nonce nonce{};
};
struct Challenge {
  std::array<char, 8> magic{'C', 'O', 'L', 'L', 'A', 'R', '-', 'S'};
  std::uint16_t version = kProtocolVersion;
  std::array<char, 22> reserved{};
  Nonce nonce{};
};
struct Verdict {
  std::uint32_t accepted = 0;
  std::array<char, 124> reason{};
  Digest proof{};
};
static_assert(sizeof(Greeting) == 64 && sizeof(Challenge) == 64 && sizeof(Verdict) == 160);

/// 32 bytes from the kernel's random number generator.
Nonce random_nonce();
/// A fresh token: 64 hexadecimal digits, for COLLAR_JOB_TOKEN.
std::string make_job_token();

/// Whether the bytes are a greeting at all. (A version of the future still is one.)
bool is_greeting(const Greeting& greeting);
Digest client_proof(const std::string& token, const Greeting& greeting, const Challenge& challenge);
Digest server_proof(const std::string& token, const Greeting& greeting, const Challenge& challenge);
/// What the server answers to a proof: the reason is empty where the client is accepted.
Verdict judge(const std::string& token, const Greeting& greeting, const Challenge& challenge,
              const Digest& proof, Purpose purpose);

/// The client's side over a connected socket. Throws UsageError with the server's reason (wrong
/// token, other version), RankLostError when the other side is silent, closes or does not speak
/// this protocol.
void greet(int socket, const Greeting& greeting, const std::string& token, Deadline deadline,
           const std::string& what);
/// The server's side, blocking, for ranks that accept each other. Returns the client's greeting.
Greeting receive_greeting(int socket, const std::string& token, Purpose purpose, Deadline deadline,
                          const std::string& what);

}  // namespace collar::comm
