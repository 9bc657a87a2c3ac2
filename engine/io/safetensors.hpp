// SPDX-License-Identifier: Apache-2.0
// Weights in the format everybody exchanges them in. Reading trusts nothing
// (engine/io/safetensors_header.hpp has the rules); writing gives the bytes that the safetensors
// library gives, through a durable file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/io/file_operations.hpp"
#include "engine/io/input_file.hpp"
#include "engine/io/safetensors_header.hpp"
#include "engine/named_tensor.hpp"

namespace collar {

class SafetensorsFile {
 public:
  /// Reads and checks the header; the data stay in the file. Throws FileError naming the file, the
  /// tensor and the rule that is broken.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  /// By position in the file.
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Null if there is no tensor of that name.
  const SafetensorsEntry* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The values, on the host. Any byte but 0 of a BOOL is true. Throws FileError if there is no
  /// such tensor, if Collar has no such element type (the header lists it nevertheless) or if its
  /// rank is above Shape::kMaxRank.
  Tensor tensor(std::string_view name) const;

 private:
  SafetensorsFile(InputFile file, SafetensorsHeader header, std::uint64_t data_begin);

  InputFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_begin_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// Writes the tensors (plain layout; in any order, which does not matter) and replaces `path`
/// durably. The file's order is the safetensors library's: by dtype, the last of kSafetensorsTypes
/// first, then by name. Other libraries expect the metadata {"format": "pt"}. Throws UsageError for
/// a name that is used twice or cannot be written, FileError if the file cannot.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}},
                       std::shared_ptr<FileOperations> files = system_files());

}  // namespace collar
