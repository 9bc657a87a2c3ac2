// SPDX-License-Identifier: Apache-2.0
// The store: what clients set, others get; and what strangers do to it, which is nothing.
#include "comm/rendezvous/store.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <future>
#include <thread>

#include "comm/rendezvous/handshake.hpp"
#include "comm/rendezvous/store_server.hpp"
#include "kernels/core/error.hpp"

using namespace collar;
using namespace collar::comm;
using namespace std::chrono_literals;
using store_protocol::Command;

namespace {

Deadline soon() {
  return Deadline::after(5s);
}
Endpoint any_port() {
  return {"127.0.0.1", 0};
}

template <typename Condition>
bool eventually(Condition condition) {
  const Deadline deadline = soon();
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

void send_text(const FileDescriptor& socket, std::string_view text) {
  send_all(socket.get(), std::as_bytes(std::span(text)), soon(), "the test");
}

/// Whether the other side has closed the connection.
bool is_closed(const FileDescriptor& socket) {
  return eventually([&] {
    char byte;
    const ssize_t n = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  });
}

/// A connection that has proved the token.
FileDescriptor greeted(const StoreServer& server) {
  FileDescriptor socket = connect_to(server.endpoint(), soon());
  Greeting greeting;
  greeting.nonce = random_nonce();
  greet(socket.get(), greeting, "t", soon(), "the store");
  return socket;
}

/// A request as Store sends it; add adds 1.
std::string request(Command command, const std::string& key, std::size_t milliseconds = 0) {
  const std::string value = command == Command::add ? "1" : "";
  std::array<std::byte, store_protocol::kLengthBytes + store_protocol::kRequestHeaderBytes> head;
  store_protocol::write_u32(head.data(),
                            store_protocol::kRequestHeaderBytes + key.size() + value.size());
  head[4] = static_cast<std::byte>(command);
  store_protocol::write_u32(head.data() + 5, milliseconds);
  store_protocol::write_u32(head.data() + 9, key.size());
  return std::string(reinterpret_cast<const char*>(head.data()), head.size()) + key + value;
}

/// The value in the next reply, which is one of success.
std::string receive_reply(const FileDescriptor& socket) {
  std::array<std::byte, store_protocol::kLengthBytes> length;
  receive_all(socket.get(), length, soon(), "the test");
  std::string reply(store_protocol::read_u32(length.data()), '\0');
  receive_all(socket.get(), std::as_writable_bytes(std::span(reply)), soon(), "the test");
  return reply.at(0) == 0 ? reply.substr(1) : "a refusal: " + reply.substr(1);
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

template <typename E, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("What one client sets, another gets, also if it asks first") {
  const Endpoint where =
      GENERATE(Endpoint{"127.0.0.1", 0}, Endpoint{"localhost", 0},
               Endpoint{"@collar-test-store-" + make_job_token().substr(0, 16), 0});
  const StoreServer server(where, "token");
  Store a(server.endpoint(), "token", soon());
  Store b(server.endpoint(), "token", soon());
  a.set("name", "value");
  CHECK(b.get("name", soon()) == "value");
  auto later = std::async(std::launch::async, [&] { return b.get("later", soon()); });
  std::this_thread::sleep_for(20ms);
  a.set("later", std::string(1 << 20, 'x'));
  CHECK(later.get() == std::string(1 << 20, 'x'));
  CHECK(a.add("count", 2) == 2);
  CHECK(b.add("count", -5) == -3);
  CHECK(a.get("count", soon()) == "-3");
}

TEST_CASE("The store works over IPv6") {
  try {
    const StoreServer server({"::1", 0}, "token");
    Store client(server.endpoint(), "token", soon());
    client.set("k", "v");
    CHECK(client.get("k", soon()) == "v");
    CHECK(to_string(server.endpoint()) == fmt::format("[::1]:{}", server.endpoint().port));
  } catch (const UsageError& error) {
    std::printf("COLLAR_SKIPPED: no IPv6 here: %s\n", error.what());
  }
}

TEST_CASE("Waiting for a key ends at the deadline") {
  const StoreServer server(any_port(), "");
  Store client(server.endpoint(), "", soon());
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(client.get("nobody sets this", Deadline::after(100ms)).has_value());
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  CHECK(elapsed >= 95ms);
  CHECK(elapsed < 2s);
  client.set("still", "usable");
  CHECK(client.get("still", soon()) == "usable");
}

TEST_CASE("A client may come before the server") {
  const Endpoint where = {"@collar-test-early-" + make_job_token().substr(0, 16), 0};
  auto early = std::async(std::launch::async, [&] { Store client(where, "t", soon()); });
  std::this_thread::sleep_for(50ms);
  const StoreServer server(where, "t");
  CHECK_NOTHROW(early.get());
}

TEST_CASE("No server within the deadline is an error with the address") {
  Endpoint nobody = any_port();
  {
    const Listener listener = listen_on(nobody);
    nobody = listener.endpoint;
  }
  const std::string message =
      message_of<RankLostError>([&] { Store client(nobody, "t", Deadline::after(100ms)); });
  CHECK_THAT(message, Catch::Contains(to_string(nobody)) && Catch::Contains("Connection refused"));
}

TEST_CASE("A wrong token is refused, and both sides know why") {
  const StoreServer server(any_port(), "right");
  const std::string message =
      message_of<UsageError>([&] { Store client(server.endpoint(), "wrong", soon()); });
  CHECK_THAT(message,
             Catch::Contains("wrong job token") && Catch::Contains(to_string(server.endpoint())));
  CHECK(server.statistics().refused == 1);
  CHECK(server.statistics().accepted == 0);
}

TEST_CASE("A server that does not know the token is not trusted") {
  // It answers with a challenge and accepts whatever comes, but cannot prove anything.
  const Listener listener = listen_on(any_port());
  auto impostor = std::async(std::launch::async, [&] {
    FileDescriptor socket;
    eventually([&] { return static_cast<bool>(socket = accept_from(listener.socket)); });
    Greeting greeting;
    receive_all(socket.get(), std::as_writable_bytes(std::span(&greeting, 1)), soon(), "greeting");
    const Challenge challenge;
    send_all(socket.get(), std::as_bytes(std::span(&challenge, 1)), soon(), "challenge");
    Digest proof;
    receive_all(socket.get(), std::as_writable_bytes(std::span(&proof, 1)), soon(), "proof");
    Verdict verdict;
    verdict.accepted = 1;
    send_all(socket.get(), std::as_bytes(std::span(&verdict, 1)), soon(), "verdict");
  });
  CHECK_THAT(message_of<UsageError>([&] { Store client(listener.endpoint, "token", soon()); }),
             Catch::Contains("belongs to another job"));
}

TEST_CASE("Another protocol version is told which one is expected") {
  const StoreServer server(any_port(), "t");
  const FileDescriptor socket = connect_to(server.endpoint(), soon());
  Greeting greeting;
  greeting.version = 7;
  CHECK_THAT(
      message_of<UsageError>([&] { greet(socket.get(), greeting, "t", soon(), "the store"); }),
      Catch::Contains("protocol version 1 here, 7 there"));
}

TEST_CASE("Garbage, silence and half a greeting do no harm") {
  StoreLimits limits;
  limits.handshake = 200ms;
  const StoreServer server(any_port(), "t", limits);
  const FileDescriptor http = connect_to(server.endpoint(), soon());
  send_text(http, "GET / HTTP/1.1\r\n\r\n");
  const FileDescriptor zeros = connect_to(server.endpoint(), soon());
  send_text(zeros, std::string(5000, '\0'));
  const FileDescriptor silent = connect_to(server.endpoint(), soon());
  const FileDescriptor half = connect_to(server.endpoint(), soon());
  send_text(half, "COLLAR-C\x01");
  Store client(server.endpoint(), "t", soon());
  client.set("k", "v");
  CHECK(is_closed(http));
  CHECK(is_closed(zeros));
  CHECK(is_closed(silent));
  CHECK(is_closed(half));
  CHECK(eventually([&] { return server.statistics().dropped == 4; }));
  CHECK(client.get("k", soon()) == "v");
}

TEST_CASE("A crowd of strangers keeps nobody out") {
  StoreLimits limits;
  limits.strangers = 8;
  const StoreServer server(any_port(), "t", limits);
  std::vector<FileDescriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(connect_to(server.endpoint(), soon()));
  Store client(server.endpoint(), "t", soon());
  CHECK(client.add("n", 1) == 1);
  CHECK(eventually([&] { return server.statistics().dropped >= 90; }));
}

TEST_CASE("A client that has proved the token still cannot send frames without bound") {
  const StoreServer server(any_port(), "t");
  const FileDescriptor socket = greeted(server);
  send_text(socket, "\xff\xff\xff\x7f garbage");
  CHECK(is_closed(socket));
  Store client(server.endpoint(), "t", soon());
  CHECK_THROWS_AS(client.set(std::string(300, 'k'), "v"), RankLostError);
  Store other(server.endpoint(), "t", soon());
  CHECK(other.add("n", 1) == 1);
}

TEST_CASE("A client that does not read its answers is not answered without bound") {
  constexpr int kRequests = 128;
  const StoreServer server(any_port(), "t");
  Store other(server.endpoint(), "t", soon());
  other.set("large", std::string(1 << 20, 'x'));
  const FileDescriptor greedy = greeted(server);
  const std::size_t before = resident_bytes();
  std::string requests;
  for (int i = 0; i < kRequests; ++i) requests += request(Command::get, "large");
  send_text(greedy, requests);
  std::this_thread::sleep_for(100ms);
  CHECK(resident_bytes() < before + (std::size_t{32} << 20));
  CHECK(other.add("n", 1) == 1);
  for (int i = 0; i < kRequests; ++i) {  // and when it reads at last, nothing is missing
    CHECK(receive_reply(greedy) == std::string(1 << 20, 'x'));
  }
}

TEST_CASE("Requests behind one that waits are served when it has been answered") {
  const StoreServer server(any_port(), "t");
  const FileDescriptor client = greeted(server);
  send_text(client, request(Command::get, "later", 5'000) + request(Command::add, "n"));
  std::this_thread::sleep_for(20ms);
  Store other(server.endpoint(), "t", soon());
  other.set("later", "value");
  CHECK(receive_reply(client) == "value");
  CHECK(receive_reply(client) == "1");
}

TEST_CASE("After a request that failed on the way, no answer is taken for another one's") {
  const Listener listener = listen_on(any_port());
  auto confused = std::async(std::launch::async, [&] {
    FileDescriptor socket;
    eventually([&] { return static_cast<bool>(socket = accept_from(listener.socket)); });
    receive_greeting(socket.get(), "t", Purpose::store, soon(), "the client");
    const std::string answers(
        "\0\0\0\0"
        "\x06\0\0\0"
        "\0late!",
        14);
    send_text(socket, answers);
    return socket;  // stays open
  });
  Store client(listener.endpoint, "t", soon());
  CHECK_THAT(message_of<RankLostError>([&] { client.get("a", soon()); }),
             Catch::Contains("a reply of 0 bytes"));
  CHECK_THAT(message_of<RankLostError>([&] { client.get("b", soon()); }),
             Catch::Contains("given up"));
  confused.get();
}

TEST_CASE("The store's size is bounded") {
  StoreLimits limits;
  limits.keys = 3;
  const StoreServer server(any_port(), "t", limits);
  Store client(server.endpoint(), "t", soon());
  for (const char* key : {"a", "b", "c", "a"}) client.set(key, "v");
  CHECK_THAT(message_of<RankLostError>([&] { client.set("d", "v"); }),
             Catch::Contains("the store is full"));
  CHECK_THROWS_AS(client.add("a", 1), RankLostError);  // not a number
}

TEST_CASE("An address in use is named, and so is an open door without a token") {
  const StoreServer server(any_port(), "t");
  CHECK_THAT(message_of<UsageError>([&] { StoreServer second(server.endpoint(), "t"); }),
             Catch::Contains(to_string(server.endpoint())) && Catch::Contains("another process"));
  CHECK_THAT(message_of<UsageError>([&] {
               StoreServer open({"0.0.0.0", 0}, "");
             }),
             Catch::Contains("COLLAR_JOB_TOKEN"));
  CHECK_THAT(message_of<UsageError>([&] {
               StoreServer nowhere({"no-such-host.invalid", 1}, "t");
             }),
             Catch::Contains("no-such-host.invalid"));
}

TEST_CASE("A rank whose connection breaks is reported to those who wait, one that leaves is not") {
  const StoreServer server(any_port(), "t");
  Store waiting(server.endpoint(), "t", soon(), 0, 3);
  { const Store leaving(server.endpoint(), "t", soon(), 1, 3); }
  CHECK_FALSE(waiting.get("x", Deadline::after(50ms)).has_value());
  auto patient = std::async(std::launch::async, [&] { return waiting.get("x", soon()); });
  {
    const FileDescriptor socket = connect_to(server.endpoint(), soon());
    Greeting greeting;
    greeting.rank = 2;
    greeting.world_size = 3;
    greet(socket.get(), greeting, "t", soon(), "the store");
  }
  CHECK_THAT(message_of<RankLostError>([&] { patient.get(); }), Catch::Contains("rank 2 (of 3)"));
}

TEST_CASE("Without descriptors left the server waits and then goes on") {
  const Endpoint where{"@collar-test-full-" + make_job_token().substr(0, 16), 0};
  const StoreServer server(where, "t");
  const FileDescriptor late(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(where.host.begin() + 1, where.host.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + where.host.size());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const FileDescriptor highest(::dup(0));
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(highest.get());

  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  const int connected = ::connect(late.get(), reinterpret_cast<const sockaddr*>(&address), length);
  std::this_thread::sleep_for(150ms);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);

  CHECK(connected == 0);
  Greeting greeting;
  greeting.nonce = random_nonce();
  CHECK_NOTHROW(greet(late.get(), greeting, "t", soon(), "the store"));
}
