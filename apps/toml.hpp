// SPDX-License-Identifier: Apache-2.0
// The part of TOML that a flat configuration needs: `key = value` with strings, numbers, booleans
// and arrays of numbers, one a line, and comments. Tables, dates and multi-line strings are
// refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collar::apps {

/// A key with its value as plain text: strings unquoted, arrays as "1,2,3".
struct TomlEntry {
  std::string key;
  std::string value;
  int line = 0;
};

/// Throws UsageError with the name and the line for what is not of this form and for a key that
/// comes twice.
std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& name);

/// Reads and parses a file of at most 1 MiB. Throws UsageError.
std::vector<TomlEntry> read_toml(const std::string& path);

/// The text as a basic string with quotes.
std::string toml_string(std::string_view text);

}  // namespace collar::apps
