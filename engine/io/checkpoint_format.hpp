// SPDX-License-Identifier: Apache-2.0
// The bytes of a checkpoint around its tensors: header, table of contents, footer.
// docs/checkpoint-format.md has the field tables. Decoding trusts nothing; afterwards the tensors
// are known to lie in the file one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/dtype.hpp"
#include "kernels/core/shape.hpp"

namespace collar {

/// A tensor in a checkpoint.
struct CheckpointEntry {
  std::string section;  ///< "model", "optimizer", …
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  ///< crc32c of the bytes
};

namespace checkpoint_format {

/// Of another major version nothing but the first 12 bytes is known.
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 0;

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kFooterBytes = 32;
inline constexpr std::size_t kAlignment = 64;  ///< of tensors, the state and the table of contents

inline constexpr std::uint64_t kMaxContents = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxState = std::uint64_t{16} << 20;
inline constexpr int kMaxStateDepth = 64;
inline constexpr std::size_t kMaxTensors = 65'536;
inline constexpr std::size_t kMaxName = 512;

/// Drawn anew for each save; header and footer of one file agree in it.
using SaveId = std::array<std::byte, 16>;

struct Header {
  std::uint64_t contents_offset = 0;
  std::uint64_t contents_bytes = 0;
  std::uint64_t file_bytes = 0;
  SaveId save_id{};
};

/// The table of contents.
struct Contents {
  std::uint64_t state_offset = 0;
  std::uint64_t state_bytes = 0;
  std::vector<CheckpointEntry> entries;
};

/// The next multiple of kAlignment.
constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

/// Gives entries and state the only offsets they can have.
void lay_out(Contents& contents);

std::vector<std::byte> encode(const Header& header);
std::vector<std::byte> encode(const Contents& contents);
/// `crc` is the crc32c of everything from the state to the end of the table of contents.
std::vector<std::byte> encode_footer(const Header& header, std::uint32_t crc);

/// These throw FileError beginning with `where` (the file) if a field is not what it must be.
Header decode_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                     const std::string& where);
Contents decode_contents(std::span<const std::byte> bytes, const Header& header,
                         const std::string& where);
/// Returns the crc.
std::uint32_t decode_footer(std::span<const std::byte> bytes, const Header& header,
                            const std::string& where);

}  // namespace checkpoint_format
}  // namespace collar
