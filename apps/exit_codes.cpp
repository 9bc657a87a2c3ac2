// SPDX-License-Identifier: Apache-2.0
#include "apps/exit_codes.hpp"

#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (is<UsageError>(error)) return ExitCode::usage;
  if (is<DataError>(error)) return ExitCode::data;
  if (is<FileError>(error)) return ExitCode::file;
  if (is<NumericsError>(error)) return ExitCode::numerics;
  if (is<RankLostError>(error)) return ExitCode::rank_lost;
  return ExitCode::internal;
}

}  // namespace collar::apps
