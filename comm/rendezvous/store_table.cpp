// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store_table.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

namespace collar::comm {
namespace {

using store_protocol::Status;

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

const std::string* StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

StoreTable::Reply StoreTable::set(const std::string& key, const std::string& value) {
  const std::string* const old = find(key);
  const std::size_t before = old == nullptr ? 0 : key.size() + old->size();
  const std::size_t after = bytes_ - before + key.size() + value.size();
  if ((old == nullptr && values_.size() >= limits_.keys) || after > limits_.total_bytes)
    return {Status::refused, "the store is full"};
  bytes_ = after;
  values_[key] = value;
  return {};
}

StoreTable::Reply StoreTable::add(const std::string& key, const std::string& delta) {
  const std::string* const old = find(key);
  const auto current = old == nullptr ? std::optional<std::int64_t>(0) : number(*old);
  const auto step = number(delta);
  std::int64_t sum = 0;
  if (!current || !step) return {Status::refused, "add: not a number"};
  if (__builtin_add_overflow(*current, *step, &sum))
    return {Status::refused, "add: the sum does not fit in 64 bits"};
  const Reply stored = set(key, std::to_string(sum));
  return stored.status == Status::ok ? Reply{Status::ok, std::to_string(sum)} : stored;
}

}  // namespace collar::comm
