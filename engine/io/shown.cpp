// SPDX-License-Identifier: Apache-2.0
#include "engine/io/shown.hpp"

#include <nlohmann/json.hpp>

namespace collar {

std::string shown(std::string_view text) {
  using nlohmann::json;
  constexpr std::size_t kMost = 80;
  std::string result =
      json(text.substr(0, kMost)).dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) result += "…";
  return result;
}

}  // namespace collar
