// SPDX-License-Identifier: Apache-2.0
// Joining a group of processes when what knocks at a rank's socket is not the rank it waits for.
#include "comm/transport/process_fabric.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <future>

#include "comm/rendezvous/handshake.hpp"
#include "comm/rendezvous/store_server.hpp"
#include "kernels/core/error.hpp"

using namespace collar;
using namespace collar::comm;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// Rank 0 of two, whose peer joins the store but never connects.
class LonelyRank {
 public:
  explicit LonelyRank(std::chrono::milliseconds patience) {
    peer_.set("host/1", host_identity());
    peer_.set("socket/1", "@nobody");
    peer_.add("present", 1);
    joined_ = std::async(std::launch::async, [this, patience] {
      const Deadline deadline = Deadline::after(patience);
      Store store(server_.endpoint(), "t", deadline, 0, 2);
      join_host_group(store, {.rank = 0, .size = 2, .token = "t"}, deadline);
    });
    socket_ = *peer_.get("socket/0", Deadline::after(5s));
  }

  /// Where it listens: the name of an abstract unix socket.
  const std::string& socket() const { return socket_; }
  bool has_ended_within(std::chrono::milliseconds time) const {
    return joined_.wait_for(time) == std::future_status::ready;
  }
  std::string error() {
    try {
      joined_.get();
    } catch (const RankLostError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

 private:
  StoreServer server_{{"127.0.0.1", 0}, "t"};
  Store peer_{server_.endpoint(), "t", Deadline::after(5s), 1, 2};
  std::string socket_;
  std::future<void> joined_;
};

/// Whether the rank, once it accepts its peers, closes the connection of one who is not.
bool turns_strangers_away(const LonelyRank& rank) {
  const FileDescriptor socket = connect_to({rank.socket(), 0}, Deadline::after(5s));
  const std::array<std::byte, sizeof(Greeting)> garbage{};
  send_all(socket.get(), garbage, Deadline::after(5s), "the rank");
  wait_for(socket.get(), POLLIN, Deadline::after(5s), "the rank");
  std::byte byte;
  return ::recv(socket.get(), &byte, 1, 0) == 0;
}

}  // namespace

TEST_CASE("A rank that never connects is named at the deadline") {
  LonelyRank rank(200ms);
  CHECK_THAT(rank.error(), Contains("did not connect to rank 0 within 0.2 s: 1"));
}

TEST_CASE("A stranger is turned away") {
  LonelyRank rank(500ms);
  CHECK(turns_strangers_away(rank));
}

TEST_CASE("Without descriptors left a rank waits for its peers no longer than the deadline") {
  LonelyRank rank(500ms);
  REQUIRE(turns_strangers_away(rank));
  const FileDescriptor stranger(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = rank.socket();
  std::copy(name.begin() + 1, name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(stranger.get());

  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  const int connected =
      ::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), length);
  const bool ended = rank.has_ended_within(3s);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);

  CHECK(connected == 0);
  CHECK(ended);
  CHECK_THAT(rank.error(), Contains("did not connect to rank 0 within 0.5 s: 1"));
}
