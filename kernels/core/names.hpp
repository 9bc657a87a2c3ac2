// SPDX-License-Identifier: Apache-2.0
// Tables of an enumeration's values and their names, read in both directions.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {

template <typename Enum, std::size_t n>
using NameTable = std::array<std::pair<Enum, std::string_view>, n>;

template <typename Enum, std::size_t n>
std::string_view name_in(const NameTable<Enum, n>& table, Enum wanted) {
  for (const auto& [value, name] : table) {
    if (value == wanted) return name;
  }
  return "unknown";
}

/// Throws UsageError that says what is unknown (`what`: "data type") and lists the names.
template <typename Enum, std::size_t n>
Enum value_in(const NameTable<Enum, n>& table, std::string_view what, std::string_view wanted) {
  std::string known;
  for (const auto& [value, name] : table) {
    if (name == wanted) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw UsageError(fmt::format("unknown {} '{}': expected one of {}", what, wanted, known));
}

}  // namespace collar
