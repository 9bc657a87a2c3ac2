// SPDX-License-Identifier: Apache-2.0
// Bytes leave a queue in the order in which they came, however appending and taking alternate.
#include "comm/rendezvous/byte_queue.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <random>

using collar::comm::ByteQueue;

TEST_CASE("A queue gives back what was appended") {
  ByteQueue queue;
  std::mt19937 random(1);
  std::size_t appended = 0, taken = 0;
  for (int step = 0; step < 10'000; ++step) {
    std::array<std::byte, 50> bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(appended++ % 251);
    queue.append(bytes);
    const std::size_t count = random() % (queue.size() + 1);
    for (std::size_t i = 0; i < count; ++i)
      if (queue.data()[i] != static_cast<std::byte>(taken++ % 251)) FAIL("byte " << taken);
    queue.take(count);
    REQUIRE(queue.size() == appended - taken);
    REQUIRE(queue.empty() == (appended == taken));
  }
}
