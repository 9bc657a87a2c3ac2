// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace collar::apps {

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out += printable(line) + '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

}  // namespace collar::apps
