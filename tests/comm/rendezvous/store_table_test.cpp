// SPDX-License-Identifier: Apache-2.0
// What a store holds, and that it never holds more than its limits.
#include "comm/rendezvous/store_table.hpp"

#include <catch2/catch.hpp>
#include <string>

using collar::comm::StoreLimits;
using collar::comm::StoreTable;
using collar::comm::store_protocol::Status;

TEST_CASE("A key has the value that was set last") {
  StoreTable table{StoreLimits()};
  CHECK(table.find("k") == nullptr);
  table.set("k", "first");
  table.set("k", "");
  REQUIRE(table.find("k") != nullptr);
  CHECK(table.find("k")->empty());
}

TEST_CASE("add counts in decimal from 0, and refuses what is no number or too large") {
  StoreTable table{StoreLimits()};
  CHECK(table.add("n", "2").value == "2");
  CHECK(table.add("n", "-5").value == "-3");
  CHECK(*table.find("n") == "-3");
  CHECK(table.add("n", "1x").status == Status::refused);
  CHECK(table.add("n", "").status == Status::refused);
  table.set("text", "abc");
  CHECK(table.add("text", "1").status == Status::refused);
  table.set("n", "9223372036854775807");
  CHECK(table.add("n", "1").status == Status::refused);
  CHECK(*table.find("n") == "9223372036854775807");
}

TEST_CASE("Keys and bytes are bounded; what is replaced makes room") {
  StoreLimits limits;
  limits.keys = 2;
  limits.total_bytes = 10;
  StoreTable table(limits);
  CHECK(table.set("a", "1234").status == Status::ok);  // 5 bytes with its key
  CHECK(table.set("b", "12345").status == Status::refused);
  CHECK(table.find("b") == nullptr);
  CHECK(table.set("b", "1234").status == Status::ok);
  CHECK(table.set("a", "12345").status == Status::refused);
  CHECK(*table.find("a") == "1234");  // as it was
  CHECK(table.set("a", "").status == Status::ok);
  CHECK(table.set("b", "12345678").status == Status::ok);
  CHECK(table.set("c", "").status == Status::refused);  // a third key
  CHECK(table.add("c", "1").status == Status::refused);
}
