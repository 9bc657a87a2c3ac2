// SPDX-License-Identifier: Apache-2.0
#include "engine/io/checkpoint_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/io/bytes.hpp"
#include "engine/io/crc32c.hpp"
#include "engine/io/shown.hpp"
#include "kernels/core/error.hpp"

namespace collar::checkpoint_format {
namespace {

using namespace std::string_view_literals;

// As in PNG: a byte that is no text, the name, and line ends that a text-mode transfer would
// change.
constexpr std::string_view kMagic =
    "\x89"
    "CLR\r\n\x1a\n"sv;
constexpr std::string_view kFooterMagic = "CLRE"sv;
constexpr std::uint32_t kEndianMark = 0x01020304;

/// Position + 1 is the type's number in the file. New types are added at the end.
constexpr std::array kTypes = {DType::f32, DType::f64, DType::bf16, DType::f16,    DType::u8,
                               DType::i8,  DType::i32, DType::i64,  DType::boolean};

template <typename... Args>
[[noreturn]] void fail(const std::string& where, fmt::format_string<Args...> reason,
                       Args&&... args) {
  throw FileError(fmt::format("{}: {}", where, fmt::format(reason, std::forward<Args>(args)...)));
}

SaveId take_save_id(ByteReader& reader) {
  SaveId id;
  std::ranges::copy(reader.take(id.size()), id.begin());
  return id;
}

CheckpointEntry take_entry(ByteReader& reader, const std::string& where) {
  CheckpointEntry entry;
  const std::uint32_t type = reader.take<std::uint8_t>();
  const std::size_t rank = reader.take<std::uint8_t>();
  const std::size_t section_bytes = reader.take<std::uint16_t>();
  const std::size_t name_bytes = reader.take<std::uint16_t>();
  const std::uint32_t reserved = reader.take<std::uint16_t>();
  entry.crc = reader.take<std::uint32_t>();
  entry.offset = reader.take<std::uint64_t>();
  entry.bytes = reader.take<std::uint64_t>();
  if (rank > Shape::kMaxRank || section_bytes > kMaxName || name_bytes > kMaxName ||
      reserved != 0) {
    fail(where,
         "table of contents: an entry of rank {} with names of {} and {} bytes, expected at "
         "most {}, {} and {}",
         rank, section_bytes, name_bytes, Shape::kMaxRank, kMaxName, kMaxName);
  }
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < rank; ++i)
    extents.push_back(static_cast<std::int64_t>(reader.take<std::uint64_t>()));
  entry.section = reader.take_text(section_bytes);
  entry.name = reader.take_text(name_bytes);
  reader.skip_to(8);

  if (type == 0 || type > kTypes.size())
    fail(where, "tensor {} is of the unknown type {}", shown(entry.name), type);
  entry.dtype = kTypes[type - 1];
  try {
    entry.shape = Shape(extents);
  } catch (const ShapeError& error) {
    fail(where, "tensor {}: {}", shown(entry.name), error.what());
  }
  return entry;
}

/// Every byte of the file has its place: what follows from the sizes must be what is written.
void check_layout(const Contents& contents, const Header& header, const std::string& where) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const CheckpointEntry& entry : contents.entries) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(entry.shape.numel()),
                               size_of(entry.dtype), &bytes) ||
        bytes != entry.bytes || bytes > header.file_bytes) {
      fail(where, "tensor {}: {} bytes for shape {} of {}", shown(entry.name), entry.bytes,
           to_string(entry.shape), name_of(entry.dtype));
    }
    if (!names.emplace(entry.section, entry.name).second)
      fail(where, "tensor {} is twice in section {}", shown(entry.name), shown(entry.section));
  }
  if (contents.state_bytes > kMaxState)
    fail(where, "a state of {} bytes, expected at most {}", contents.state_bytes, kMaxState);
  Contents expected = contents;
  lay_out(expected);
  for (std::size_t i = 0; i < contents.entries.size(); ++i) {
    const CheckpointEntry& entry = expected.entries[i];
    if (contents.entries[i].offset != entry.offset ||
        entry.offset + entry.bytes > header.contents_offset) {
      fail(where, "tensor {} is at byte {}, expected {} and an end before {}", shown(entry.name),
           contents.entries[i].offset, entry.offset, header.contents_offset);
    }
  }
  const std::uint64_t contents_offset = aligned(expected.state_offset + expected.state_bytes);
  if (contents.state_offset != expected.state_offset || header.contents_offset != contents_offset) {
    fail(where, "state and table of contents are at bytes {} and {}, expected {} and {}",
         contents.state_offset, header.contents_offset, expected.state_offset, contents_offset);
  }
}

}  // namespace

void lay_out(Contents& contents) {
  std::uint64_t end = kHeaderBytes;
  for (CheckpointEntry& entry : contents.entries) {
    entry.offset = aligned(end);
    end = entry.offset + entry.bytes;
  }
  contents.state_offset = aligned(end);
}

std::vector<std::byte> encode(const Header& header) {
  ByteWriter writer;
  writer.put(kMagic);
  writer.put(kMajor);
  writer.put(kMinor);
  writer.put(kEndianMark);
  writer.put(header.contents_offset);
  writer.put(header.contents_bytes);
  writer.put(header.file_bytes);
  writer.put(header.save_id);
  writer.put(std::uint32_t{0});
  writer.put(crc32c(writer.bytes()));
  return writer.bytes();
}

std::vector<std::byte> encode(const Contents& contents) {
  ByteWriter writer;
  writer.put(contents.state_offset);
  writer.put(contents.state_bytes);
  writer.put(std::uint64_t{contents.entries.size()});
  for (const CheckpointEntry& entry : contents.entries) {
    const auto type = std::find(kTypes.begin(), kTypes.end(), entry.dtype) - kTypes.begin() + 1;
    writer.put(static_cast<std::uint8_t>(type));
    writer.put(static_cast<std::uint8_t>(entry.shape.rank()));
    writer.put(static_cast<std::uint16_t>(entry.section.size()));
    writer.put(static_cast<std::uint16_t>(entry.name.size()));
    writer.put(std::uint16_t{0});
    writer.put(entry.crc);
    writer.put(entry.offset);
    writer.put(entry.bytes);
    for (const std::int64_t extent : entry.shape.extents())
      writer.put(static_cast<std::uint64_t>(extent));
    writer.put(entry.section);
    writer.put(entry.name);
    writer.pad_to(8);
  }
  return writer.bytes();
}

std::vector<std::byte> encode_footer(const Header& header, std::uint32_t crc) {
  ByteWriter writer;
  writer.put(kFooterMagic);
  writer.put(crc);
  writer.put(header.file_bytes);
  writer.put(header.save_id);
  return writer.bytes();
}

Header decode_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                     const std::string& where) {
  ByteReader reader(bytes, where);
  if (reader.take_text(kMagic.size()) != kMagic) fail(where, "is not a Collar checkpoint");
  const std::uint32_t major = reader.take<std::uint16_t>();
  const std::uint32_t minor = reader.take<std::uint16_t>();
  if (major != kMajor) {
    fail(where, "has format version {}.{}, this Collar reads version {}: use {} Collar", major,
         minor, kMajor, major > kMajor ? "a newer" : "an older");
  }
  const std::uint32_t endian_mark = reader.take<std::uint32_t>();
  Header header;
  header.contents_offset = reader.take<std::uint64_t>();
  header.contents_bytes = reader.take<std::uint64_t>();
  header.file_bytes = reader.take<std::uint64_t>();
  header.save_id = take_save_id(reader);
  const std::uint32_t reserved = reader.take<std::uint32_t>();
  if (reader.take<std::uint32_t>() != crc32c(bytes.first(kHeaderBytes - 4)) ||
      endian_mark != kEndianMark || reserved != 0)
    fail(where, "the header is damaged");
  if (header.file_bytes != file_bytes) {
    fail(where, "has {} bytes, but {} were written: it was cut short or added to", file_bytes,
         header.file_bytes);
  }
  const std::uint64_t inside = file_bytes - kFooterBytes;  // the caller has seen header and footer
  if (header.contents_bytes > kMaxContents || header.contents_offset > inside ||
      header.contents_bytes != inside - header.contents_offset) {
    fail(where, "a table of contents of {} bytes at byte {} does not fit in front of the footer",
         header.contents_bytes, header.contents_offset);
  }
  return header;
}

Contents decode_contents(std::span<const std::byte> bytes, const Header& header,
                         const std::string& where) {
  ByteReader reader(bytes, where + ": table of contents");
  Contents contents;
  contents.state_offset = reader.take<std::uint64_t>();
  contents.state_bytes = reader.take<std::uint64_t>();
  const std::uint64_t count = reader.take<std::uint64_t>();
  if (count > kMaxTensors) fail(where, "{} tensors, expected at most {}", count, kMaxTensors);
  for (std::uint64_t i = 0; i < count; ++i) contents.entries.push_back(take_entry(reader, where));
  if (!reader.at_end()) fail(where, "the table of contents goes on after its last entry");
  check_layout(contents, header, where);
  return contents;
}

std::uint32_t decode_footer(std::span<const std::byte> bytes, const Header& header,
                            const std::string& where) {
  ByteReader reader(bytes, where + ": footer");
  const std::string magic = reader.take_text(kFooterMagic.size());
  const std::uint32_t crc = reader.take<std::uint32_t>();
  const std::uint64_t file_bytes = reader.take<std::uint64_t>();
  if (magic != kFooterMagic || file_bytes != header.file_bytes ||
      take_save_id(reader) != header.save_id)
    fail(where, "the footer that completes a checkpoint is missing or of another save");
  return crc;
}

}  // namespace collar::checkpoint_format
