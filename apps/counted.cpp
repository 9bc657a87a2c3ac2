// SPDX-License-Identifier: Apache-2.0
#include "apps/counted.hpp"

#include <fmt/format.h>

namespace collar::apps {

std::string with_thousands(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::int64_t number, std::string_view noun) {
  const char* ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", with_thousands(number), noun, ending);
}

}  // namespace collar::apps
