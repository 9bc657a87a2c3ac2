// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/algorithm_table.hpp"

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"

using namespace collar;
using comm::Algorithm;
using comm::AlgorithmTable;
using comm::Collective;

namespace {

std::string refusal(const std::string& text) {
  try {
    const AlgorithmTable table(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Without a word from the user everything is direct") {
  CHECK(AlgorithmTable().choose(Collective::all_reduce, 1 << 20) == Algorithm::direct);
  CHECK(AlgorithmTable("").choose(Collective::reduce, 0) == Algorithm::direct);
}

TEST_CASE("An algorithm can be chosen for a collective, for all or for some sizes") {
  const AlgorithmTable table("all_reduce=ring:0-64K;direct:64K-1M; ring:1M-max, reduce=ring");
  CHECK(table.choose(Collective::all_reduce, 0) == Algorithm::ring);
  CHECK(table.choose(Collective::all_reduce, (64 << 10) - 1) == Algorithm::ring);
  CHECK(table.choose(Collective::all_reduce, 64 << 10) == Algorithm::direct);
  CHECK(table.choose(Collective::all_reduce, 1 << 20) == Algorithm::ring);
  CHECK(table.choose(Collective::all_reduce, SIZE_MAX) == Algorithm::ring);
  CHECK(table.choose(Collective::reduce, 5) == Algorithm::ring);
  CHECK(table.choose(Collective::broadcast, 5) == Algorithm::direct);
  CHECK(AlgorithmTable("all_reduce=ring:1K-2K").choose(Collective::all_reduce, 4096) ==
        Algorithm::direct);
}

TEST_CASE("What cannot be read is shown") {
  CHECK_THAT(refusal("all_reduce"),
             Catch::Contains("\"all_reduce\": expected collective=algorithm"));
  CHECK_THAT(refusal("all_reduce=rong"), Catch::Contains("\"rong\": expected one of direct, ring"));
  CHECK_THAT(refusal("sum=ring"),
             Catch::Contains("\"sum\": expected one of all_reduce, reduce_scatter"));
  CHECK_THAT(refusal("reduce=ring:8K"), Catch::Contains("\"8K\": expected from-to"));
  CHECK_THAT(refusal("reduce=ring:8X-max"), Catch::Contains("\"8X\""));
  CHECK_THAT(refusal("reduce=ring:-5"), Catch::Contains("COLLAR_ALGO"));
}
