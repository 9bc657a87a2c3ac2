// SPDX-License-Identifier: Apache-2.0
#include "engine/io/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/bytes.hpp"
#include "engine/io/durable_file.hpp"
#include "engine/io/shown.hpp"
#include "kernels/core/error.hpp"

namespace collar {
namespace {

constexpr std::size_t kPrefix = 8;  ///< the header's length, in front of it

/// Position in the table, which is the order of the file, descending.
std::size_t rank_of(DType dtype) {
  const auto found =
      std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                   [dtype](const SafetensorsType& type) { return type.dtype == dtype; });
  return static_cast<std::size_t>(found - kSafetensorsTypes.begin());
}

template <typename Value>
std::string json_text(const Value& value) {
  try {
    return nlohmann::json(value).dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("write_safetensors: a name or a text of the metadata is not UTF-8");
  }
}

/// The tensors in the file's order.
std::vector<const NamedTensor*> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) order.push_back(&named);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t rank_a = rank_of(a->tensor.dtype());
    const std::size_t rank_b = rank_of(b->tensor.dtype());
    return rank_a != rank_b ? rank_a > rank_b : a->name < b->name;
  });
  return order;
}

void check_tensors(std::span<const NamedTensor> tensors) {
  if (tensors.size() > kSafetensorsMaxTensors) {
    throw UsageError(fmt::format("write_safetensors: {} tensors, expected at most {}",
                                 tensors.size(), kSafetensorsMaxTensors));
  }
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    const auto fail = [&name = name](const std::string& reason) {
      throw UsageError(fmt::format("write_safetensors: tensor {} {}", shown(name), reason));
    };
    if (name == "__metadata__") fail("has the name that is reserved for metadata");
    if (name.size() > kSafetensorsMaxName)
      fail(fmt::format("has a name longer than {} bytes", kSafetensorsMaxName));
    if (!names.insert(name).second) fail("is given twice");
    if (tensor.layout() != Layout::plain)
      fail(fmt::format("is {}; only plain tensors can be written", describe(tensor)));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(InputFile file, SafetensorsHeader header, std::uint64_t data_begin)
    : file_(std::move(file)), header_(std::move(header)), data_begin_(data_begin) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) index_[header_.entries[i].name] = i;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  InputFile file(path);
  const std::string where = path.string();
  if (file.size() < kPrefix) {
    throw FileError(
        fmt::format("{}: {} bytes are no safetensors file, which begins with 8 bytes of length",
                    where, file.size()));
  }
  std::array<std::byte, kPrefix> prefix{};
  file.read_at(0, prefix);
  const auto length = ByteReader(prefix, where).take<std::uint64_t>();
  if (length > kSafetensorsMaxHeader || length > file.size() - kPrefix) {
    throw FileError(
        fmt::format("{}: announces a header of {} bytes, expected at most {} and the file's {}",
                    where, length, kSafetensorsMaxHeader, file.size() - kPrefix));
  }
  const std::uint64_t data_begin = kPrefix + length;
  SafetensorsHeader header =
      parse_safetensors_header(file.read_text_at(kPrefix, length), file.size() - data_begin, where);
  return SafetensorsFile(std::move(file), std::move(header), data_begin);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.entries[found->second];
}

Tensor SafetensorsFile::tensor(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr)
    throw FileError(fmt::format("{}: has no tensor {}", path().string(), shown(name)));
  const auto fail = [&](const std::string& reason) {
    throw FileError(fmt::format("{}: tensor {} {}", path().string(), shown(name), reason));
  };
  const std::optional<DType> dtype = find_safetensors_type(entry->dtype)->dtype;
  if (!dtype) fail(fmt::format("is of type {}, which Collar does not have", entry->dtype));

  std::vector<std::int64_t> extents;
  for (const std::uint64_t extent : entry->shape) {
    if (extent > std::numeric_limits<std::int64_t>::max())
      fail(fmt::format("has the extent {}", extent));
    extents.push_back(static_cast<std::int64_t>(extent));
  }
  Shape shape;
  try {
    shape = Shape(extents);
  } catch (const ShapeError& error) {
    fail(fmt::format("cannot be loaded: {}", error.what()));
  }

  Tensor result = Tensor::empty(shape, *dtype);
  const std::span bytes(result.view().as<std::byte>(), result.bytes());
  file_.read_at(data_begin_ + entry->begin, bytes);
  if (*dtype == DType::boolean)
    for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
  return result;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata,
                       std::shared_ptr<FileOperations> files) {
  check_tensors(tensors);
  const std::vector<const NamedTensor*> order = in_file_order(tensors);

  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + json_text(metadata);
  std::uint64_t data_bytes = 0;
  for (const NamedTensor* named : order) {
    const Tensor& tensor = named->tensor;
    const std::uint64_t begin = std::exchange(data_bytes, data_bytes + tensor.bytes());
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        text.size() > 1 ? "," : "", json_text(named->name),
                        kSafetensorsTypes[rank_of(tensor.dtype())].name,
                        fmt::join(tensor.shape().extents(), ","), begin, data_bytes);
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kSafetensorsMaxHeader) {
    throw UsageError(
        fmt::format("write_safetensors: the header would have {} bytes, expected at most {}",
                    text.size(), kSafetensorsMaxHeader));
  }

  DurableFile file(path, kPrefix + text.size() + data_bytes, std::move(files));
  ByteWriter header;
  header.put(std::uint64_t{text.size()});
  header.put(text);
  file.write(header.bytes());
  for (const NamedTensor* named : order) {
    const Tensor host = named->tensor.to_host();
    file.write({host.view().as<std::byte>(), host.bytes()});
  }
  file.commit();
}

}  // namespace collar
