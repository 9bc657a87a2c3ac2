// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store.hpp"

#include <fmt/format.h>

#include <charconv>
#include <thread>
#include <vector>

#include "comm/rendezvous/handshake.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

/// How long an answer may take beyond the patience the server was asked for.
constexpr std::chrono::seconds kGrace(10);
/// One attempt to be greeted; a stranger on the port must not use up the whole deadline.
constexpr std::chrono::seconds kAttempt(3);
constexpr std::size_t kLargestReply = (std::size_t{1} << 20) + 256;

}  // namespace

Store::Store(const Endpoint& endpoint, const std::string& token, Deadline deadline, int rank,
             int world_size)
    : endpoint_(endpoint), what_("the store at " + to_string(endpoint)) {
  for (;;) {
    socket_ = connect_to(endpoint, deadline);
    Greeting greeting;
    greeting.rank = rank;
    greeting.world_size = world_size;
    greeting.nonce = random_nonce();
    try {
      greet(socket_.get(), greeting, token, deadline.capped(kAttempt), what_);
      return;
    } catch (const RankLostError&) {  // crowded out, or the wrong program still holds the port
      if (deadline.passed()) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

Store::~Store() {
  if (!socket_) return;
  try {
    send_request(store_protocol::Command::goodbye, "", "", {}, Deadline::after({}));
  } catch (const RankLostError&) {  // the server is gone already
  }
}

void Store::send_request(store_protocol::Command command, std::string_view key,
                         std::string_view value, std::chrono::milliseconds patience,
                         Deadline deadline) {
  using namespace store_protocol;
  std::vector<std::byte> message(kLengthBytes + kRequestHeaderBytes);
  write_u32(message.data(), kRequestHeaderBytes + key.size() + value.size());
  message[4] = static_cast<std::byte>(command);
  write_u32(message.data() + 5, static_cast<std::size_t>(patience.count()));
  write_u32(message.data() + 9, key.size());
  for (const std::string_view text : {key, value}) {
    const auto bytes = std::as_bytes(std::span(text));
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  send_all(socket_.get(), message, deadline, what_);
}

Store::Reply Store::request(store_protocol::Command command, std::string_view key,
                            std::string_view value, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::after(patience + kGrace);
  const std::lock_guard lock(mutex_);
  if (!socket_)
    throw RankLostError(what_ + ": the connection was given up when an earlier request failed");
  try {
    send_request(command, key, value, patience, deadline);
    return receive_reply(deadline);
  } catch (
      const RankLostError&) {  // its answer may still come, and would be taken for the next one
    socket_.reset();
    throw;
  }
}

Store::Reply Store::receive_reply(Deadline deadline) {
  using namespace store_protocol;
  std::byte length_bytes[kLengthBytes];
  receive_all(socket_.get(), length_bytes, deadline, what_);
  const std::size_t length = read_u32(length_bytes);
  if (length == 0 || length > kLargestReply)
    throw RankLostError(fmt::format("{}: a reply of {} bytes", what_, length));
  std::vector<std::byte> reply(length);
  receive_all(socket_.get(), reply, deadline, what_);
  const auto* text = reinterpret_cast<const char*>(reply.data());
  return {static_cast<Status>(reply[0]), std::string(text + 1, length - 1)};
}

void Store::set(std::string_view key, std::string_view value) {
  const Reply reply = request(store_protocol::Command::set, key, value, {});
  if (reply.status != store_protocol::Status::ok)
    throw RankLostError(fmt::format("{}: set {}: {}", what_, key, reply.value));
}

std::optional<std::string> Store::get(std::string_view key, Deadline deadline) {
  const std::chrono::milliseconds patience(deadline.poll_milliseconds());
  Reply reply = request(store_protocol::Command::get, key, "", patience);
  if (reply.status == store_protocol::Status::rank_gone) throw RankLostError(reply.value);
  if (reply.status == store_protocol::Status::refused)
    throw RankLostError(fmt::format("{}: get {}: {}", what_, key, reply.value));
  if (reply.status != store_protocol::Status::ok) return std::nullopt;
  return std::move(reply.value);
}

std::int64_t Store::add(std::string_view key, std::int64_t delta) {
  const Reply reply = request(store_protocol::Command::add, key, std::to_string(delta), {});
  if (reply.status != store_protocol::Status::ok)
    throw RankLostError(fmt::format("{}: add {}: {}", what_, key, reply.value));
  std::int64_t sum = 0;
  std::from_chars(reply.value.data(), reply.value.data() + reply.value.size(), sum);
  return sum;
}

}  // namespace collar::comm
