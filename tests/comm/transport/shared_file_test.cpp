// SPDX-License-Identifier: Apache-2.0
// Anonymous shared memory: there before it is used, the same bytes on both sides, gone with its
// last user.
#include "comm/transport/shared_file.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <utility>

#include "kernels/core/error.hpp"

using namespace collar;
using namespace collar::comm;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::after(5s);
}

std::pair<FileDescriptor, FileDescriptor> connected_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

TEST_CASE("A file handed to a peer is the same memory there") {
  const auto [here, there] = connected_pair();
  const FileDescriptor file = make_shared_file(10'000);
  send_descriptor(here.get(), {7, 10'000, 0}, file, soon(), "the peer");
  ShareNotice notice;
  const FileDescriptor received = receive_descriptor(there.get(), notice, soon(), "the peer");
  CHECK(notice.sequence == 7);
  const auto mine = map_shared_file(file, 10'000);
  const auto theirs = map_shared_file(received, 10'000);
  CHECK(theirs.get()[9'999] == std::byte{0});
  mine.get()[9'999] = std::byte{42};
  CHECK(theirs.get()[9'999] == std::byte{42});
}

TEST_CASE("More memory than there is, is refused with the sizes") {
  try {
    make_shared_file(std::size_t{1} << 50);
    FAIL("a petabyte was found");
  } catch (const DeviceError& error) {
    CHECK_THAT(error.what(),
               Catch::Contains("cannot get 1125899906842624 bytes of shared memory") &&
                   Catch::Contains("are available"));
  }
}

TEST_CASE("A file that could shrink, or has another size, is not mapped") {
  const FileDescriptor file = make_shared_file(8192);
  CHECK(::ftruncate(file.get(), 4096) != 0);  // sealed
  CHECK_THROWS_AS(map_shared_file(file, 4096), DeviceError);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const FileDescriptor a(ends[0]), b(ends[1]);
  CHECK_THROWS_AS(map_shared_file(a, 0), DeviceError);
}

TEST_CASE("A peer that has no memory says so, and one that is silent or gone is an error") {
  auto [here, there] = connected_pair();
  send_descriptor(here.get(), {0, 5, 1}, FileDescriptor(), soon(), "the peer");
  ShareNotice notice;
  CHECK_FALSE(receive_descriptor(there.get(), notice, soon(), "the peer"));
  CHECK(notice.failed == 1);
  CHECK_THROWS_AS(receive_descriptor(there.get(), notice, Deadline::after(20ms), "the peer"),
                  RankLostError);
  here.reset();
  CHECK_THROWS_AS(receive_descriptor(there.get(), notice, soon(), "the peer"), RankLostError);
}
