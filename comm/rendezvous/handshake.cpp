// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/handshake.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "comm/rendezvous/socket.hpp"
#include "engine/io/file_descriptor.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

template <typename T>
T receive_message(int socket, Deadline deadline, const std::string& what) {
  T message;
  receive_all(socket, std::as_writable_bytes(std::span(&message, 1)), deadline, what);
  return message;
}

Digest prove(std::string_view role, const std::string& token, const Greeting& greeting,
             const Challenge& challenge) {
  std::vector<std::byte> message;
  for (const auto part : {std::as_bytes(std::span(role)), bytes_of(greeting), bytes_of(challenge)})
    message.insert(message.end(), part.begin(), part.end());
  return hmac_sha256(token, message);
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  std::size_t filled = 0;
  while (filled < nonce.size()) {
    const ssize_t n = ::getrandom(nonce.data() + filled, nonce.size() - filled, 0);
    if (n < 0 && errno != EINTR)
      throw DeviceError("no random bytes from the kernel: " + system_error_text(errno));
    if (n > 0) filled += static_cast<std::size_t>(n);
  }
  return nonce;
}

std::string make_job_token() {
  return to_hex(random_nonce());
}

bool is_greeting(const Greeting& greeting) {
  return greeting.magic == Greeting().magic && greeting.byte_order == Greeting().byte_order;
}

Digest client_proof(const std::string& token, const Greeting& greeting,
                    const Challenge& challenge) {
  return prove("client", token, greeting, challenge);
}

Digest server_proof(const std::string& token, const Greeting& greeting,
                    const Challenge& challenge) {
  return prove("server", token, greeting, challenge);
}

Verdict judge(const std::string& token, const Greeting& greeting, const Challenge& challenge,
              const Digest& proof, Purpose purpose) {
  Verdict verdict;
  std::string reason;
  if (greeting.version != kProtocolVersion)
    reason = fmt::format("protocol version {} here, {} there: all ranks need the same Collar",
                         kProtocolVersion, greeting.version);
  else if (greeting.purpose != purpose)
    reason = "this port serves another purpose";
  else if (!equal_in_constant_time(proof, client_proof(token, greeting, challenge)))
    reason = "wrong job token: all ranks need the same COLLAR_JOB_TOKEN";
  verdict.accepted = reason.empty();
  std::copy_n(reason.begin(), std::min(reason.size(), verdict.reason.size() - 1),
              verdict.reason.begin());
  if (verdict.accepted) verdict.proof = server_proof(token, greeting, challenge);
  return verdict;
}

void greet(int socket, const Greeting& greeting, const std::string& token, Deadline deadline,
           const std::string& what) {
  send_all(socket, bytes_of(greeting), deadline, what);
  const auto challenge = receive_message<Challenge>(socket, deadline, what);
  if (challenge.magic != Challenge().magic)
    throw RankLostError(what + ": something that is not Collar answers there");
  send_all(socket, client_proof(token, greeting, challenge), deadline, what);
  const auto verdict = receive_message<Verdict>(socket, deadline, what);
  if (verdict.accepted == 0) {
    const std::string_view reason(verdict.reason.data(),
                                  ::strnlen(verdict.reason.data(), verdict.reason.size()));
    throw UsageError(fmt::format("{} refused this process: {}", what, reason));
  }
  if (!equal_in_constant_time(verdict.proof, server_proof(token, greeting, challenge)))
    throw UsageError(what + " does not know the job token: it belongs to another job");
}

Greeting receive_greeting(int socket, const std::string& token, Purpose purpose, Deadline deadline,
                          const std::string& what) {
  const auto greeting = receive_message<Greeting>(socket, deadline, what);
  if (!is_greeting(greeting)) throw RankLostError(what + ": a stranger that does not speak Collar");
  Challenge challenge;
  challenge.nonce = random_nonce();
  send_all(socket, bytes_of(challenge), deadline, what);
  const auto proof = receive_message<Digest>(socket, deadline, what);
  const Verdict verdict = judge(token, greeting, challenge, proof, purpose);
  send_all(socket, bytes_of(verdict), deadline, what);
  if (verdict.accepted == 0)
    throw RankLostError(fmt::format("{}: refused: {}", what, verdict.reason.data()));
  return greeting;
}

}  // namespace collar::comm
