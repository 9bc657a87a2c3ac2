// SPDX-License-Identifier: Apache-2.0
// The single operations of golden/ops: their attributes, inputs and results as tensors, and the
// tolerance of each result (golden/README-models.md, section 3).
//
//   test::GoldenOps ops(path);
//   for (const test::OpCase& c : ops.cases("relu")) CHECK(c.mismatch("y", relu(c.tensor("x"))) ==
//   "");
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/io/safetensors.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/tensors.hpp"

namespace collar::test {

class OpCase {
 public:
  OpCase(nlohmann::json definition, std::shared_ptr<const SafetensorsFile> file)
      : definition_(std::move(definition)), file_(std::move(file)) {}

  std::string family() const { return definition_.at("family"); }
  std::string name() const { return definition_.at("case"); }
  const nlohmann::json& attributes() const { return definition_.at("attributes"); }
  /// The whole row of index.json.
  const nlohmann::json& definition() const { return definition_; }
  /// What torch says where the operation is an error; empty otherwise.
  std::string error() const { return definition_.value("error", std::string()); }
  std::vector<std::string> results() const {
    std::vector<std::string> names;
    for (const auto& [result, shape] : definition_.at("results").items()) names.push_back(result);
    return names;
  }

  /// Whether there is an input or result of this name ("x", "dy", "y", "dx", …).
  bool has(const std::string& tensor) const { return file_ && file_->contains(full_name(tensor)); }
  Tensor tensor(const std::string& name) const { return file_->tensor(full_name(name)); }

  /// How far an element of this result may be off; 0 means the same bits (any NaN for a NaN).
  double tolerance(const std::string& result) const {
    const bool exact = family() == "cast" || family() == "dropout" || result == "index" ||
                       (family() == "relu" && name() == "special") ||
                       (family() == "max_pool" && result == "y");
    if (exact) return 0;
    double error = 0;
    double largest = 0;
    if (definition_.contains("errors") && definition_["errors"].contains(result)) {
      error = number(definition_["errors"][result].at("max_error"));
      largest = number(definition_["errors"][result].at("max_abs"));
    } else {  // not listed: from the two results themselves
      const std::vector<double> right = values_of(tensor(result));
      const std::vector<double> rounded = values_of(tensor(result + ".f32"));
      for (std::size_t i = 0; i < right.size(); ++i) {
        if (!std::isfinite(right[i]) || !std::isfinite(rounded[i])) continue;
        error = std::max(error, std::abs(right[i] - rounded[i]));
        largest = std::max(largest, std::abs(right[i]));
      }
    }
    return 8 * error + 0x1p-21 * largest;
  }

  /// Compares what we computed with a result. Empty if all elements are within the tolerance, else
  /// what is not.
  std::string mismatch(const std::string& result, const Tensor& ours) const {
    const Tensor expected = tensor(result);
    const std::string where = family() + "/" + name() + "/" + result;
    if (!ours.defined()) return where + ": undefined";
    if (ours.shape() != expected.shape()) {
      return fmt::format("{}: shape {}, expected {}", where, to_string(ours.shape()),
                         to_string(expected.shape()));
    }
    const std::vector<double> a = values_of(ours);
    const std::vector<double> b = values_of(expected);
    const double allowed = tolerance(result);
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!close(a[i], b[i], allowed) && wrong++ == 0) first = i;
    if (wrong == 0) return {};
    return fmt::format(
        "{}: {} of {} elements wrong; element {} is {:.9g}, expected {:.9g} +- {:.2g}", where,
        wrong, a.size(), first, a[first], b[first], allowed);
  }

 private:
  /// Inputs that several cases share are stored without the case's name.
  std::string full_name(const std::string& tensor) const {
    const std::string own = name() + "/" + tensor;
    return file_->contains(own) ? own : tensor;
  }

  static double number(const nlohmann::json& value) {
    return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr)
                             : value.get<double>();
  }

  nlohmann::json definition_;
  std::shared_ptr<const SafetensorsFile> file_;
};

class GoldenOps {
 public:
  /// `folder` is golden/ops.
  explicit GoldenOps(std::filesystem::path folder)
      : folder_(std::move(folder)), index_(read_json(folder_ / "index.json")) {}

  /// All cases of a family, errors included, in the order of the index.
  std::vector<OpCase> cases(const std::string& family) const {
    const auto file = std::make_shared<const SafetensorsFile>(
        SafetensorsFile::open(folder_ / (family + ".safetensors")));
    std::vector<OpCase> found;
    for (const nlohmann::json& row : index_.at("cases"))
      if (row.at("family") == family) found.emplace_back(row, file);
    return found;
  }

 private:
  std::filesystem::path folder_;
  nlohmann::json index_;
};

}  // namespace collar::test
