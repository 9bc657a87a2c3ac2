// SPDX-License-Identifier: Apache-2.0
#include "engine/io/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "engine/io/bytes.hpp"
#include "engine/io/crc32c.hpp"
#include "engine/io/durable_file.hpp"
#include "engine/io/shown.hpp"
#include "kernels/core/error.hpp"

namespace collar {
namespace {

using namespace checkpoint_format;

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.view().as<std::byte>(), tensor.bytes()};
}

void check_tensors(std::span<const CheckpointTensor> tensors) {
  if (tensors.size() > kMaxTensors) {
    throw UsageError(fmt::format("write_checkpoint: {} tensors, expected at most {}",
                                 tensors.size(), kMaxTensors));
  }
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const auto& [section, name, tensor] : tensors) {
    const auto fail = [&section = section, &name = name](const std::string& reason) {
      throw UsageError(fmt::format("write_checkpoint: tensor {} in section {} {}", shown(name),
                                   shown(section), reason));
    };
    if (section.size() > kMaxName || name.size() > kMaxName)
      fail(fmt::format("has a name longer than {} bytes", kMaxName));
    if (!names.emplace(section, name).second) fail("is given twice");
    if (tensor.layout() != Layout::plain)
      fail(fmt::format("is {}; only plain tensors can be written", describe(tensor)));
  }
}

/// Throws UsageError for what would not come back: JSON has no infinity and no NaN, and readers a
/// limit to nesting.
void check_state(const nlohmann::json& value, int depth) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw UsageError(
        fmt::format("write_checkpoint: the state contains {}; numbers that are not finite have to "
                    "be text",
                    value.get<double>()));
  }
  if (!value.is_structured()) return;
  if (depth == kMaxStateDepth) {
    throw UsageError(fmt::format("write_checkpoint: the state is nested deeper than {}", depth));
  }
  for (const auto& item : value) check_state(item, depth + 1);
}

std::string state_text(const nlohmann::json& state) {
  check_state(state, 0);
  std::string text;
  try {
    text = state.dump();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("write_checkpoint: the state cannot be written: {}", error.what()));
  }
  if (text.size() > kMaxState) {
    throw UsageError(fmt::format("write_checkpoint: a state of {} bytes, expected at most {}",
                                 text.size(), kMaxState));
  }
  return text;
}

SaveId new_save_id() {
  std::random_device entropy;
  SaveId id;
  for (std::byte& byte : id) byte = static_cast<std::byte>(entropy());
  return id;
}

/// Writes zeros up to `offset`.
void pad(DurableFile& file, std::uint64_t offset) {
  constexpr std::array<std::byte, kAlignment> kZeros{};
  file.write(std::span(kZeros).first(offset - file.position()));
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, std::span<const CheckpointTensor> tensors,
                      const nlohmann::json& state, std::shared_ptr<FileOperations> files) {
  check_tensors(tensors);
  const std::string text = state_text(state);

  Contents contents;
  for (const CheckpointTensor& item : tensors) {
    contents.entries.push_back({item.section, item.name, item.tensor.dtype(), item.tensor.shape(),
                                0, item.tensor.bytes(), 0});
  }
  contents.state_bytes = text.size();
  lay_out(contents);
  Header header;
  header.contents_offset = aligned(contents.state_offset + contents.state_bytes);
  header.contents_bytes = encode(contents).size();
  header.file_bytes = header.contents_offset + header.contents_bytes + kFooterBytes;
  header.save_id = new_save_id();
  if (header.contents_bytes > kMaxContents) {
    throw UsageError(
        fmt::format("write_checkpoint: a table of contents of {} bytes, expected at most {}",
                    header.contents_bytes, kMaxContents));
  }

  DurableFile file(path, header.file_bytes, std::move(files));
  file.write(encode(header));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor host = tensors[i].tensor.to_host();
    pad(file, contents.entries[i].offset);
    contents.entries[i].crc = crc32c(bytes_of(host));
    file.write(bytes_of(host));
  }
  pad(file, contents.state_offset);

  // The footer's checksum covers all that follows the tensors.
  ByteWriter tail;
  tail.put(text);
  tail.pad_to(kAlignment);
  tail.put(encode(contents));
  file.write(tail.bytes());
  file.write(encode_footer(header, crc32c(tail.bytes())));
  file.commit();
}

CheckpointFile::CheckpointFile(InputFile file, Header header, Contents contents, std::string state)
    : file_(std::move(file)),
      header_(header),
      contents_(std::move(contents)),
      state_(std::move(state)) {
  for (std::size_t i = 0; i < contents_.entries.size(); ++i)
    index_[{contents_.entries[i].section, contents_.entries[i].name}] = i;
}

CheckpointFile CheckpointFile::open(const std::filesystem::path& path) {
  InputFile file(path);
  const std::string where = path.string();
  if (file.size() < kHeaderBytes + kFooterBytes) {
    throw FileError(fmt::format("{}: {} bytes are no Collar checkpoint", where, file.size()));
  }
  const auto read = [&file](std::uint64_t offset, std::uint64_t size) {
    std::vector<std::byte> bytes(size);
    file.read_at(offset, bytes);
    return bytes;
  };
  const Header header = decode_header(read(0, kHeaderBytes), file.size(), where);
  const std::uint32_t crc =
      decode_footer(read(file.size() - kFooterBytes, kFooterBytes), header, where);
  Contents contents =
      decode_contents(read(header.contents_offset, header.contents_bytes), header, where);

  const std::uint64_t tail_end = header.contents_offset + header.contents_bytes;
  const std::vector<std::byte> tail = read(contents.state_offset, tail_end - contents.state_offset);
  if (crc32c(tail) != crc)
    throw FileError(fmt::format("{}: state or table of contents are damaged (checksum)", where));
  std::string state = file.read_text_at(contents.state_offset, contents.state_bytes);
  return CheckpointFile(std::move(file), header, std::move(contents), std::move(state));
}

const CheckpointEntry* CheckpointFile::find(const std::string& section,
                                            const std::string& name) const {
  const auto found = index_.find({section, name});
  return found == index_.end() ? nullptr : &contents_.entries[found->second];
}

bool CheckpointFile::contains(const std::string& section, const std::string& name) const {
  return find(section, name) != nullptr;
}

Tensor CheckpointFile::tensor(const std::string& section, const std::string& name) const {
  const CheckpointEntry* entry = find(section, name);
  if (entry == nullptr) {
    throw FileError(fmt::format("{}: has no tensor {} in section {}", path().string(), shown(name),
                                shown(section)));
  }
  Tensor result = Tensor::empty(entry->shape, entry->dtype);
  file_.read_at(entry->offset, {result.view().as<std::byte>(), result.bytes()});
  const bool no_bool =
      entry->dtype == DType::boolean &&
      std::ranges::any_of(bytes_of(result), [](std::byte b) { return b > std::byte{1}; });
  if (crc32c(bytes_of(result)) != entry->crc || no_bool) {
    throw FileError(fmt::format("{}: tensor {} in section {} is damaged (checksum)",
                                path().string(), shown(name), shown(section)));
  }
  return result;
}

nlohmann::json CheckpointFile::state() const {
  using nlohmann::json;
  const auto limit_depth = [this](int depth, json::parse_event_t, json&) {
    if (depth > kMaxStateDepth) {
      throw FileError(
          fmt::format("{}: the state is nested deeper than {}", path().string(), kMaxStateDepth));
    }
    return true;
  };
  try {
    return json::parse(state_, limit_depth);
  } catch (const json::exception& error) {
    throw FileError(fmt::format("{}: the state is not JSON: {}", path().string(), error.what()));
  }
}

std::string CheckpointFile::save_id() const {
  std::string text;
  for (const std::byte byte : header_.save_id)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

void CheckpointFile::verify() const {
  std::uint64_t end = kHeaderBytes;
  for (const CheckpointEntry& entry : contents_.entries) {
    check_padding(end, entry.offset);
    tensor(entry.section, entry.name);
    end = entry.offset + entry.bytes;
  }
  check_padding(end, contents_.state_offset);
}

void CheckpointFile::check_padding(std::uint64_t begin, std::uint64_t end) const {
  const std::string padding = file_.read_text_at(begin, end - begin);
  if (const std::size_t at = padding.find_first_not_of('\0'); at != padding.npos)
    throw FileError(
        fmt::format("{}: byte {} between tensors is not zero", path().string(), begin + at));
}

}  // namespace collar
