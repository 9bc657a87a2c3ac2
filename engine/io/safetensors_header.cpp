// SPDX-License-Identifier: Apache-2.0
#include "engine/io/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "engine/io/shown.hpp"
#include "kernels/core/error.hpp"

namespace collar {
namespace {

using nlohmann::json;

/// Receives the parser's events. A file of this format has a fixed form, so a state and the last
/// keys are all that has to be remembered; anything of another form ends the parse, and with it any
/// nesting.
class HeaderReader final : public json::json_sax_t {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  SafetensorsHeader take() { return {std::move(entries_), std::move(metadata_)}; }

  bool key(string_t& name) override {
    switch (state_) {
      case State::names:
        return begin_value(name);
      case State::metadata:
        if (metadata_.contains(name)) fail("has the key {} twice", shown(name));
        key_ = std::move(name);
        return true;
      case State::entry:
        return begin_field(name);
      default:
        return unexpected("a key");
    }
  }

  bool string(string_t& value) override {
    if (state_ == State::metadata) {
      metadata_.emplace(std::exchange(key_, {}), std::move(value));
      return true;
    }
    if (state_ != State::entry || field_ != Field::dtype) return unexpected("a string");
    if (find_safetensors_type(value) == nullptr) fail("has the unknown dtype {}", shown(value));
    entry_.dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::start:
        state_ = State::names;
        return true;
      case State::before_metadata:
        state_ = State::metadata;
        return true;
      case State::before_entry:
        state_ = State::entry;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::entry) end_entry();
    state_ = state_ == State::names ? State::end : State::names;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::entry || field_ == Field::dtype) return unexpected("a list");
    state_ = State::numbers;
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    if (field_ == Field::offsets) {
      if (offsets_.size() != 2) fail("has {} data_offsets, expected 2", offsets_.size());
      entry_.begin = offsets_[0];
      entry_.end = offsets_[1];
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::numbers) return unexpected("a number");
    std::vector<std::uint64_t>& list = field_ == Field::shape ? entry_.shape : offsets_;
    const std::size_t most = field_ == Field::shape ? kSafetensorsMaxRank : 2;
    if (list.size() == most) fail("has more than {} numbers in {}", most, name_of(field_));
    list.push_back(value);
    return true;
  }

  bool null() override {
    if (state_ != State::before_metadata) return unexpected("null");
    state_ = State::names;  // as if it were absent
    return true;
  }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected(fmt::format("the number {}", shown(text)));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    throw FileError(fmt::format("{}: the header is not JSON (byte {})", where_, position));
  }

 private:
  enum class State { start, names, before_metadata, metadata, before_entry, entry, numbers, end };
  enum class Field { dtype, shape, offsets };

  static std::string_view name_of(Field field) {
    constexpr std::array<std::string_view, 3> kNames = {"dtype", "shape", "data_offsets"};
    return kNames[static_cast<std::size_t>(field)];
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> rule, Args&&... args) const {
    const bool in_metadata = state_ == State::metadata || state_ == State::before_metadata;
    const std::string subject = in_metadata              ? "__metadata__"
                                : state_ == State::names ? "the header"
                                                         : "tensor " + shown(entry_.name);
    throw FileError(
        fmt::format("{}: {} {}", where_, subject, fmt::format(rule, std::forward<Args>(args)...)));
  }

  bool unexpected(std::string_view what) const {
    switch (state_) {
      case State::start:
        throw FileError(fmt::format("{}: the header is {}, expected an object", where_, what));
      case State::before_metadata:
        fail("is {}, expected an object of strings", what);
      case State::metadata:
        fail("has {} under {}, expected a string", what, shown(key_));
      case State::before_entry:
        fail("is {}, expected an object", what);
      case State::numbers:
      case State::entry:
        fail("has {} as or in its {}", what, name_of(field_));
      default:
        fail("has {} in a place where none can be", what);
    }
  }

  bool begin_value(std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) fail("has __metadata__ twice");
      state_ = State::before_metadata;
      return true;
    }
    if (entries_.size() == kSafetensorsMaxTensors)
      fail("names more than {} tensors", kSafetensorsMaxTensors);
    if (name.size() > kSafetensorsMaxName)
      fail("has a name of {} bytes, expected at most {}", name.size(), kSafetensorsMaxName);
    if (!names_.insert(name).second) fail("names tensor {} twice", shown(name));
    entry_ = {};
    entry_.name = std::move(name);
    offsets_.clear();
    seen_ = {};
    state_ = State::before_entry;
    return true;
  }

  bool begin_field(const std::string& name) {
    for (const Field field : {Field::dtype, Field::shape, Field::offsets}) {
      if (name != name_of(field)) continue;
      if (std::exchange(seen_[static_cast<std::size_t>(field)], true))
        fail("has the field {} twice", name);
      field_ = field;
      return true;
    }
    fail("has the unknown field {}", shown(name));
  }

  void end_entry() {
    for (const Field field : {Field::dtype, Field::shape, Field::offsets})
      if (!seen_[static_cast<std::size_t>(field)]) fail("has no {}", name_of(field));
    entries_.push_back(std::move(entry_));
  }

  const std::string& where_;
  State state_ = State::start;
  Field field_ = Field::dtype;
  std::string key_;  ///< of the metadata
  SafetensorsEntry entry_;
  std::vector<std::uint64_t> offsets_;
  std::array<bool, 3> seen_{};
  bool metadata_seen_ = false;
  std::set<std::string, std::less<>> names_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Bytes of an entry's elements: every product is checked, from left to right, as the real reader
/// does.
std::uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& where) {
  std::uint64_t bits = 1;
  bool overflow = false;
  for (const std::uint64_t extent : entry.shape)
    overflow = overflow || __builtin_mul_overflow(bits, extent, &bits);
  overflow = overflow || __builtin_mul_overflow(
                             bits, std::uint64_t{find_safetensors_type(entry.dtype)->bits}, &bits);
  if (overflow) {
    throw FileError(fmt::format("{}: tensor {}: shape [{}] of {} has more bits than 2^64", where,
                                shown(entry.name), fmt::join(entry.shape, ", "), entry.dtype));
  }
  if (bits % 8 != 0) {
    throw FileError(fmt::format("{}: tensor {}: its {} bits are no whole number of bytes", where,
                                shown(entry.name), bits));
  }
  return bits / 8;
}

void check_ranges(const SafetensorsHeader& header, std::uint64_t data_bytes,
                  const std::string& where) {
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != covered || entry.end < entry.begin) {
      throw FileError(fmt::format(
          "{}: tensor {}: data_offsets [{}, {}], expected to begin at {}: ranges must follow one "
          "another without gap or overlap",
          where, shown(entry.name), entry.begin, entry.end, covered));
    }
    if (const std::uint64_t bytes = bytes_of(entry, where); entry.end - entry.begin != bytes) {
      throw FileError(fmt::format("{}: tensor {}: {} bytes of data, but shape [{}] of {} needs {}",
                                  where, shown(entry.name), entry.end - entry.begin,
                                  fmt::join(entry.shape, ", "), entry.dtype, bytes));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw FileError(fmt::format("{}: the tensors need {} bytes of data, the file has {}", where,
                                covered, data_bytes));
  }
}

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto found =
      std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                   [name](const SafetensorsType& type) { return type.name == name; });
  return found == kSafetensorsTypes.end() ? nullptr : &*found;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& where) {
  // Two things the JSON parser would let pass: a byte order mark, and a NUL as the end of the text.
  if (text.starts_with("\xef\xbb\xbf"))
    throw FileError(fmt::format("{}: the header begins with a byte order mark", where));
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    throw FileError(fmt::format("{}: the header is not JSON (NUL at byte {})", where, nul));

  HeaderReader reader(where);
  json::sax_parse(text, &reader);
  SafetensorsHeader header = reader.take();
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  check_ranges(header, data_bytes, where);
  return header;
}

}  // namespace collar
