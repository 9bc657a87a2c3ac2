// SPDX-License-Identifier: Apache-2.0
// JSON as the text that leaves the program. Names of files are bytes and JSON is UTF-8: what is
// none is replaced by U+FFFD, so that an odd name never ends a run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collar::apps {

/// On one line, or indented by so many columns.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace collar::apps
