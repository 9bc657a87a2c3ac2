// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: JSON that names tensors and their byte ranges. Whoever wrote it
// is not trusted: after parse_safetensors_header() the ranges are known to cover the data exactly,
// without overlap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.hpp"

namespace collar {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;                 ///< as in the file: "F32", "BF16", …
  std::vector<std::uint64_t> shape;  ///< may be of higher rank than a Tensor's
  std::uint64_t begin = 0;           ///< first byte, counted from the start of the data
  std::uint64_t end = 0;             ///< one past the last
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< by position in the data
  std::map<std::string, std::string> metadata;
};

/// Of the format.
inline constexpr std::uint64_t kSafetensorsMaxHeader = 100'000'000;
/// Collar's own limits.
inline constexpr std::size_t kSafetensorsMaxTensors = 65'536;
inline constexpr std::size_t kSafetensorsMaxName = 4'096;
inline constexpr std::size_t kSafetensorsMaxRank = 256;

/// Parses and checks the JSON text of a header in front of `data_bytes` bytes of data; `where` (the
/// file) begins every message. Stricter than the real reader in what its text forbids: duplicate
/// names or keys, unknown fields, entries that are no objects. Throws FileError naming the tensor
/// and the rule.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& where);

/// An element type of the format. The order of the table is the order writers sort by, ascending.
struct SafetensorsType {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;  ///< empty if Collar has no such type
};
inline constexpr std::array<SafetensorsType, 22> kSafetensorsTypes = {{
    {"BOOL", 8, DType::boolean},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, DType::u8},
    {"I8", 8, DType::i8},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, {}},
    {"F32", 32, DType::f32},
    {"C64", 64, {}},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, {}},
}};

/// Null if there is none of that name.
const SafetensorsType* find_safetensors_type(std::string_view name);

}  // namespace collar
