// SPDX-License-Identifier: Apache-2.0
#include "apps/counted.hpp"

#include <catch2/catch.hpp>

using collar::apps::counted;

TEST_CASE("One is one, and several are several") {
  CHECK(counted(1, "epoch") == "1 epoch");
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(2, "class") == "2 classes");
  CHECK(counted(1234567, "photo") == "1,234,567 photos");
  CHECK(counted(123, "step") == "123 steps");
}
