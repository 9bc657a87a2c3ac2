// SPDX-License-Identifier: Apache-2.0
// The names under which options and files know the values of an enumeration.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/core/error.hpp"

namespace collar::data {

/// One name for each value, in the values' order, which counts from 0.
template <typename Enum, std::size_t kCount>
struct NameTable {
  std::string_view what;  ///< how messages call the enumeration
  std::array<std::string_view, kCount> names;

  constexpr std::string_view name(Enum value) const {
    return names[static_cast<std::size_t>(value)];
  }
  /// Throws UsageError that lists the names.
  Enum value(std::string_view name) const {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      throw UsageError(
          fmt::format("{} '{}' is unknown; there are {}", what, name, fmt::join(names, ", ")));
    }
    return static_cast<Enum>(found - names.begin());
  }
};

}  // namespace collar::data
