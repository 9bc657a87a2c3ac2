// SPDX-License-Identifier: Apache-2.0
#include "apps/exit_codes.hpp"

#include <catch2/catch.hpp>
#include <new>

#include "kernels/core/error.hpp"

using namespace collar;
using namespace collar::apps;

TEST_CASE("Every class of error has its exit code") {
  CHECK(to_int(exit_code_of(UsageError(""))) == 2);
  CHECK(to_int(exit_code_of(ShapeError(""))) == 2);
  CHECK(to_int(exit_code_of(AutogradError(""))) == 2);
  CHECK(to_int(exit_code_of(DataError(""))) == 3);
  CHECK(to_int(exit_code_of(FileError(""))) == 4);
  CHECK(to_int(exit_code_of(NumericsError(""))) == 5);
  CHECK(to_int(exit_code_of(RankLostError(""))) == 6);
  CHECK(to_int(exit_code_of(DeviceError(""))) == 7);
  CHECK(to_int(exit_code_of(std::bad_alloc())) == 7);
  CHECK(to_int(exit_code_of(std::logic_error(""))) == 7);
}
