// SPDX-License-Identifier: Apache-2.0
#include "apps/variables.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "apps/accelerate/printable.hpp"
#include "apps/nearest.hpp"
#include "apps/train/options.hpp"

namespace collar::apps {
namespace {

constexpr std::string_view kPrefix = "COLLAR_";

// By the names that variable_of() turns into variables: those of the options and those that other
// floors, the tests and the build read.
std::vector<std::string> known() {
  std::vector<std::string> names{"algo",   "isa",      "job-token", "join-timeout", "full-tests",
                                 "shared", "bench",    "ccache",    "cuda",         "onednn",
                                 "openmp", "sanitize", "tests",     "werror"};
  for (const OptionSpec& option : train_option_table()) names.push_back(option.key);
  return names;
}

std::string key_of(std::string_view variable) {
  std::string key(variable.substr(kPrefix.size()));
  std::ranges::transform(key, key.begin(), [](char c) {
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return key;
}

bool is_started_rank() {
  const char* rank = std::getenv("RANK");
  return rank != nullptr &&
         (std::getenv("COLLAR_JOB_TOKEN") != nullptr || std::string_view(rank) != "0");
}

}  // namespace

std::vector<std::string> misspelt_variables() {
  std::vector<std::string> warnings;
  if (is_started_rank()) return warnings;
  const std::vector<std::string> names = known();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable =
        std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!variable.starts_with(kPrefix)) continue;
    const std::string key = key_of(variable);
    const auto meant = nearest(key, names);
    if (!meant || variable == variable_of(*meant)) continue;
    warnings.push_back(fmt::format("{} is no variable that is read here; did you mean {}?",
                                   printable(variable), variable_of(*meant)));
  }
  return warnings;
}

}  // namespace collar::apps
