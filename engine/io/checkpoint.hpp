// SPDX-License-Identifier: Apache-2.0
// One file that holds all of a run: named tensors in sections, each with its checksum, and a JSON
// text with everything else (counters, schedule, class names, preprocessing, configuration). It is
// written durably, says itself whether it is complete, and depends on neither ranks nor devices.
// The format: docs/checkpoint-format.md.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/checkpoint_format.hpp"
#include "engine/io/file_operations.hpp"
#include "engine/io/input_file.hpp"
#include "engine/tensor.hpp"

namespace collar {

struct CheckpointTensor {
  std::string section;  ///< "model", "optimizer", …; free, at most 512 bytes
  std::string name;     ///< unique in its section, at most 512 bytes
  Tensor tensor;        ///< plain layout
};

/// Replaces `path` by a checkpoint of these tensors, in this order, and this state (finite numbers,
/// nested at most 64 deep). Either the whole new file is there afterwards or
/// the old one. Throws UsageError for content that cannot be written, FileError if writing fails.
void write_checkpoint(const std::filesystem::path& path, std::span<const CheckpointTensor> tensors,
                      const nlohmann::json& state,
                      std::shared_ptr<FileOperations> files = system_files());

class CheckpointFile {
 public:
  /// Checks header, footer, table of contents and state, not the tensors. Throws FileError that
  /// says what is wrong with the file.
  static CheckpointFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  /// In the order of writing.
  const std::vector<CheckpointEntry>& entries() const { return contents_.entries; }
  bool contains(const std::string& section, const std::string& name) const;
  /// The values, on the host. Throws FileError if there is no such tensor or its checksum is wrong.
  Tensor tensor(const std::string& section, const std::string& name) const;
  /// Throws FileError if the text is not JSON or nested deeper than 64.
  nlohmann::json state() const;
  /// 32 hexadecimal digits that no other save has.
  std::string save_id() const;

  /// Reads everything: the checksum of each tensor, and that what lies between them is zero. Throws
  /// FileError naming the first tensor that is damaged.
  void verify() const;

 private:
  CheckpointFile(InputFile file, checkpoint_format::Header header,
                 checkpoint_format::Contents contents, std::string state);
  const CheckpointEntry* find(const std::string& section, const std::string& name) const;
  void check_padding(std::uint64_t begin, std::uint64_t end) const;

  InputFile file_;
  checkpoint_format::Header header_;
  checkpoint_format::Contents contents_;
  std::string state_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

}  // namespace collar
