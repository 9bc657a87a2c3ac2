// SPDX-License-Identifier: Apache-2.0
#include "apps/toml.hpp"

#include <fmt/format.h>

#include <set>

#include "engine/io/input_file.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of editors on Windows
constexpr std::string_view kBlank = " \t";
constexpr std::string_view kBareKey =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kBareValue =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-._";

/// One line, read from left to right.
class Line {
 public:
  Line(std::string_view text, const std::string& name, int number)
      : text_(text), name_(name), number_(number) {
    skip_blank();
  }

  bool at_end() const { return text_.empty() || text_.front() == '#'; }

  TomlEntry entry() {
    TomlEntry entry{.key = {}, .value = {}, .line = number_};
    if (text_.front() == '[') fail("tables are not used here: expected key = value");
    entry.key = take_all(kBareKey);
    if (entry.key.empty()) fail("expected a key");
    skip_blank();
    expect('=');
    entry.value = text_.starts_with('[') ? array() : scalar();
    if (!at_end()) fail(fmt::format("nothing may follow the value, found \"{}\"", text_));
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("{}:{}: {}", name_, number_, what));
  }
  void skip_blank() {
    text_.remove_prefix(std::min(text_.find_first_not_of(kBlank), text_.size()));
  }
  std::string take_all(std::string_view allowed) {
    const std::string taken(text_.substr(0, text_.find_first_not_of(allowed)));
    text_.remove_prefix(taken.size());
    return taken;
  }
  void expect(char c) {
    if (!text_.starts_with(c)) fail(fmt::format("expected '{}'", c));
    text_.remove_prefix(1);
    skip_blank();
  }

  std::string scalar() {
    std::string value;
    if (text_.starts_with('"')) {
      value = basic_string();
    } else if (text_.starts_with('\'')) {
      const auto end = text_.find('\'', 1);
      if (end == std::string_view::npos) fail("a string without its closing '");
      value = text_.substr(1, end - 1);
      text_.remove_prefix(end + 1);
    } else {
      value = take_all(kBareValue);
      if (value.empty()) fail("expected a value (strings are written in quotes)");
    }
    skip_blank();
    return value;
  }

  std::string basic_string() {
    std::string value;
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        text_.remove_prefix(i + 1);
        return value;
      }
      if (text_[i] != '\\') {
        value += text_[i];
        continue;
      }
      if (++i == text_.size()) break;
      constexpr std::string_view kLetters = "\"\\nrt";
      constexpr std::string_view kMeanings = "\"\\\n\r\t";
      const auto at = kLetters.find(text_[i]);
      if (at == std::string_view::npos) fail(fmt::format("unknown escape \\{}", text_[i]));
      value += kMeanings[at];
    }
    fail("a string without its closing \"");
  }

  std::string array() {
    std::string values;
    expect('[');
    while (!text_.starts_with(']')) {
      if (!values.empty()) {
        expect(',');
        if (text_.starts_with(']')) break;
        values += ',';
      }
      values += scalar();
    }
    expect(']');
    return values;
  }

  std::string_view text_;
  const std::string& name_;
  int number_;
};

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& name) {
  std::vector<TomlEntry> entries;
  std::set<std::string> keys;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    if (content.ends_with('\r')) content.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    Line line(content, name, number);
    if (line.at_end()) continue;
    entries.push_back(line.entry());
    if (!keys.insert(entries.back().key).second) {
      throw UsageError(
          fmt::format("{}:{}: {} is given a second time", name, number, entries.back().key));
    }
  }
  return entries;
}

std::vector<TomlEntry> read_toml(const std::string& path) {
  std::string text;
  try {
    text = read_text(path, kMostBytes);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
  return parse_toml(text, path);
}

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace collar::apps
