// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/algorithm_table.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

constexpr Collective kChoosable[] = {Collective::all_reduce, Collective::reduce_scatter,
                                     Collective::all_gather, Collective::broadcast,
                                     Collective::reduce};
constexpr Algorithm kAlgorithms[] = {Algorithm::direct, Algorithm::ring};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The text before and after the first `separator`; no second part if there is none.
std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view text,
                                                                   char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {trimmed(text), std::nullopt};
  return {trimmed(text.substr(0, at)), trimmed(text.substr(at + 1))};
}

[[noreturn]] void fail(std::string_view part, const std::string& expected) {
  throw UsageError(fmt::format("COLLAR_ALGO: cannot read \"{}\": expected {}", part, expected));
}

template <typename Value, std::size_t kCount>
Value named(std::string_view name, const Value (&values)[kCount]) {
  std::string names;
  for (const Value value : values) {
    if (name_of(value) == name) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(value));
  }
  fail(name, "one of " + names);
}

std::size_t parse_size(std::string_view text) {
  if (text == "max") return SIZE_MAX;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value > (SIZE_MAX >> shift))
    fail(text, "a size such as 8K, 25M or max");
  return value << shift;
}

}  // namespace

AlgorithmTable::AlgorithmTable(std::string_view text) {
  std::optional<std::string_view> entries = trimmed(text);
  while (entries && !entries->empty()) {
    const auto [entry, more] = split(*entries, ',');
    entries = more;
    const auto [name, choices] = split(entry, '=');
    if (!choices) fail(entry, "collective=algorithm");
    std::vector<Range>& ranges = ranges_[named(name, kChoosable)];
    std::optional<std::string_view> left = choices;
    while (left) {
      const auto [choice, others] = split(*left, ';');
      left = others;
      const auto [algorithm, sizes] = split(choice, ':');
      Range range{named(algorithm, kAlgorithms), 0, SIZE_MAX};
      if (sizes) {
        const auto [from, to] = split(*sizes, '-');
        if (!to) fail(*sizes, "from-to");
        range.from = parse_size(from);
        range.to = parse_size(*to);
      }
      ranges.push_back(range);
    }
  }
}

Algorithm AlgorithmTable::choose(Collective collective, std::size_t bytes) const {
  if (const auto found = ranges_.find(collective); found != ranges_.end())
    for (const Range& range : found->second)
      if (bytes >= range.from && (bytes < range.to || range.to == SIZE_MAX)) return range.algorithm;
  return Algorithm::direct;
}

}  // namespace collar::comm
