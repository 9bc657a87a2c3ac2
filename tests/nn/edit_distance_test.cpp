// SPDX-License-Identifier: Apache-2.0
#include "nn/edit_distance.hpp"

#include <catch2/catch.hpp>
#include <string>

using collar::nn::edit_distance;

TEST_CASE("The distance of words is how often somebody's finger slipped") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("acb", "abc") == 1);
  CHECK(edit_distance("ABC", "abc") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance(std::string(1'000'000, 'a'), "") == 64);
}
