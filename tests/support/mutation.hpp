// SPDX-License-Identifier: Apache-2.0
// Fuzzing of parsers: valid input with a few random edits.
#pragma once

#include <string>
#include <string_view>

#include "engine/random.hpp"

namespace collar::test {

/// A few bytes of `text` replaced, inserted, erased or repeated: by characters of `alphabet` (what
/// the format is made of) and by any others, half of the time each. Never empty.
inline std::string mutated(std::string text, std::string_view alphabet, RandomStream& random) {
  const auto below = [&](std::size_t n) { return random.below(static_cast<std::uint32_t>(n)); };
  for (std::uint32_t edits = 1 + random.below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size());
    const char value = random.chance(0.5) ? alphabet[below(alphabet.size())]
                                          : static_cast<char>(random.next_u32());
    switch (random.below(4)) {
      case 0:
        text[at] = value;
        break;
      case 1:
        text.insert(at, 1, value);
        break;
      case 2:
        text.erase(at, 1 + random.below(8));
        break;
      default:
        text.insert(at, text.substr(at, random.below(40)));
    }
    if (text.empty()) text = "x";
  }
  return text;
}

}  // namespace collar::test
