// SPDX-License-Identifier: Apache-2.0
// Claims of ranks: agreement is silent, and a disagreement reads the same everywhere.
#include "comm/agreement.hpp"

#include <catch2/catch.hpp>

#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/threads_as_ranks.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::comm::Claim;
using collar::comm::Communicator;
using collar::comm::require_agreement;

namespace {

using Claims = std::vector<Claim>;

/// What three ranks are told, of which the last one makes other claims: the same text for all.
std::string told(const Claims& claims, const Claims& others) {
  const auto messages = test::messages_of_ranks(3, [&](Communicator& communicator) {
    require_agreement(communicator, "menu", communicator.rank() == 2 ? others : claims);
  });
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
  return messages[0];
}

}  // namespace

TEST_CASE("Ranks that claim the same may go on, whatever the texts hold") {
  const Claims claims{{"soup", "tomato"}, {"", ""}, {"bytes", std::string("\x1e\x1f\0 é", 6)}};
  CHECK(told(claims, claims).empty());
  CHECK(told({}, {}).empty());
}

TEST_CASE("The first claim that differs is named with both ranks") {
  const Claims menu{{"soup", "tomato"}, {"dessert", "ice"}};
  CHECK(
      told(menu, {{"soup", "tomato"}, {"dessert", "cake"}}) ==
      "the ranks do not agree on the menu: dessert is ice on rank 0 and cake on rank 2; start all "
      "ranks with the same program, options and files");
  CHECK_THAT(told(menu, {{"salad", "tomato"}, {"dessert", "ice"}}),
             Contains("where rank 0 has soup, rank 2 has salad;"));
  CHECK_THAT(told(menu, {{"soup", "tomato"}}),
             Contains("rank 0 has 2, rank 2 has 1; dessert is only on rank 0;"));
  CHECK_THAT(told({}, menu), Contains("rank 0 has 0, rank 2 has 2; soup is only on rank 2;"));
}

TEST_CASE("Texts cannot pretend to be other claims") {
  CHECK_THAT(told({{"a",
                    "b\x1e"
                    "c\x1f"
                    "d"}},
                  {{"a", "b"}, {"c", "d"}}),
             Contains("a is b\x1e"));
  CHECK_THAT(told({{"ab", "c"}}, {{"a", "bc"}}), Contains("where rank 0 has ab, rank 2 has a;"));
}

TEST_CASE("Ranks that still differ after the broadcast are told so") {
  const auto messages = test::messages_of_ranks(2, [](Communicator& communicator) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> same{{"w", cpu.random({10}, 1)}, {"again", cpu.random({10}, 1)}};
    if (communicator.rank() == 1) same[1].tensor = same[0].tensor;  // one tensor under two names
    same[0].tensor.copy_from(cpu.random({10}, 2));
    comm::broadcast_tensors(communicator, "parameters", same);
  });
  for (const std::string& message : messages) CHECK_THAT(message, Contains("w is crc32c "));
}
