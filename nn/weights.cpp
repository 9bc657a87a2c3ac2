// SPDX-License-Identifier: Apache-2.0
#include "nn/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/io/input_file.hpp"
#include "engine/io/safetensors.hpp"
#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

constexpr std::string_view kPrefix = "module.";

template <typename From>
Tensor widened(const Tensor& tensor) {
  const std::vector<From> values = tensor.to_vector<From>();
  Tensor result = Tensor::empty(tensor.shape());
  std::transform(values.begin(), values.end(), result.data<float>(),
                 [](From value) { return static_cast<float>(value); });
  return result;
}

/// The values as f32 where they are of another floating type.
Tensor as_f32(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f64:
      return widened<double>(tensor);
    case DType::bf16:
      return widened<bfloat16>(tensor);
    case DType::f16:
      return widened<float16>(tensor);
    default:
      return tensor;
  }
}

using Values = std::map<std::string, Tensor>;

/// By name, without the prefix of a wrapped model.
Values by_name(const Parameters& state) {
  const bool wrapped = !state.empty() && std::all_of(state.begin(), state.end(), [](const auto& p) {
    return p.name.starts_with(kPrefix);
  });
  Values values;
  for (const Parameter& entry : state) {
    values.emplace(wrapped ? entry.name.substr(kPrefix.size()) : entry.name, entry.tensor);
  }
  return values;
}

/// Whether the classifier in the file is the model's but for the number of classes.
bool has_other_classes(const Values& values, const Parameters& wanted,
                       const std::string& classifier) {
  const auto given = values.find(classifier + ".weight");
  const auto own = std::find_if(wanted.begin(), wanted.end(), [&](const Parameter& parameter) {
    return parameter.name == classifier + ".weight";
  });
  if (given == values.end() || own == wanted.end()) return false;
  const Shape& there = given->second.shape();
  const Shape& here = own->tensor.shape();
  return there.rank() == 2 && here.rank() == 2 && there[0] != here[0] && there[1] == here[1];
}

/// torch.save() writes a zip, or, as it did long ago, a pickle: neither is data alone.
void refuse_pytorch(const std::filesystem::path& path) {
  const InputFile file(path);
  const std::string begin = file.read_text_at(0, std::min<std::uint64_t>(file.size(), 4));
  if (begin != "PK\3\4" && !begin.starts_with("\x80\x02")) return;
  std::filesystem::path converted = path;
  converted.replace_extension(".safetensors");
  throw FileError(
      fmt::format("{0}: this is a file of PyTorch, expected one of safetensors. In Python:\n"
                  "  import torch, safetensors.torch\n"
                  "  safetensors.torch.save_file(torch.load(\"{0}\", weights_only=True), \"{1}\")",
                  path.string(), converted.string()));
}

}  // namespace

LoadReport load_state(Module& model, const Parameters& state, const std::string& classifier) {
  Values values = by_name(state);
  const Parameters wanted = model.state_dict();
  LoadReport report;
  if (const auto found = values.find(classifier + ".weight");
      found != values.end() && found->second.rank() == 2) {
    report.classes_in_file = found->second.size(0);
  }
  const bool drops_classifier = has_other_classes(values, wanted, classifier);

  std::string problems;
  std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
  for (const Parameter& own : wanted) {
    const auto found = values.find(own.name);
    if (found == values.end()) {
      problems += fmt::format("\n  missing: {} {}", own.name, to_string(own.tensor.shape()));
      continue;
    }
    const Tensor given = as_f32(found->second);
    values.erase(found);
    if (drops_classifier && own.name.starts_with(classifier + ".")) {
      report.dropped.push_back(own.name);
    } else if (given.shape() != own.tensor.shape() || given.dtype() != own.tensor.dtype()) {
      problems += fmt::format("\n  {}: {} {} given, {} {} expected", own.name,
                              name_of(given.dtype()), to_string(given.shape()),
                              name_of(own.tensor.dtype()), to_string(own.tensor.shape()));
    } else {
      copies.emplace_back(own.tensor, given);
    }
  }
  for (const auto& [name, tensor] : values) {
    problems += fmt::format("\n  unexpected: {} {}", name, to_string(tensor.shape()));
  }
  if (!problems.empty()) throw FileError("the weights do not fit the model:" + problems);
  for (auto& [to, from] : copies) to.copy_from(from);
  return report;
}

LoadReport load_weights(Module& model, const std::filesystem::path& path,
                        const std::string& classifier) {
  refuse_pytorch(path);
  const SafetensorsFile file = SafetensorsFile::open(path);
  Parameters state;
  for (const SafetensorsEntry& entry : file.entries()) {
    state.push_back({entry.name, file.tensor(entry.name)});
  }
  try {
    return load_state(model, state, classifier);
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

void save_weights(const Module& model, const std::filesystem::path& path) {
  write_safetensors(path, model.state_dict());
}

}  // namespace collar::nn
