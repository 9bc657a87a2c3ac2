// SPDX-License-Identifier: Apache-2.0
// The helpers that read golden values are themselves compared with golden values.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "tests/support/formula.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_models.hpp"
#include "tests/support/golden_ops.hpp"

using namespace collar;
using nlohmann::json;
namespace formula = collar::test::formula;

namespace {

float from_hex(const json& text) {
  return std::strtof(text.get<std::string>().c_str(), nullptr);
}

std::uint64_t word_from_hex(const json& text) {
  return std::strtoull(text.get<std::string>().c_str(), nullptr, 16);
}

Shape shape_of(const json& extents) {
  return Shape(extents.get<std::vector<std::int64_t>>());
}

/// The shapes around a name that say what it is: a batch norm has a running variance, a bias its
/// weight.
formula::Shapes neighbourhood(const std::string& name, const std::string& kind,
                              const Shape& shape) {
  formula::Shapes shapes = {{name, shape}};
  const std::string stem = name.substr(0, name.rfind('.'));
  if (kind.starts_with("bn_")) shapes[stem + ".running_var"] = shape;
  if (kind == "linear_bias") shapes[stem + ".weight"] = {shape[0], 2048};
  return shapes;
}

}  // namespace

TEST_CASE("The formula of weights and inputs: golden/models/formula.json") {
  REQUIRE_SHARED(path, "golden/models/formula.json");
  const json golden = test::read_json(path);
  for (const json& row : golden.at("vectors")) {
    const std::string name = row.at("name");
    const std::string kind = row.at("kind");
    const Shape shape = shape_of(row.at("shape"));
    INFO(name << " as " << kind);
    const std::uint64_t hash = formula::name_hash(name);
    CHECK(hash == word_from_hex(row.at("h0")));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(formula::splitmix64(hash + i) == word_from_hex(row.at("splitmix64")[i]));

    std::vector<float> values;
    if (kind == "u")
      values = formula::input(name, shape).to_vector<float>();
    else if (kind == "probe")
      values = formula::signed_unit(name, shape.numel());
    else
      values = formula::entry(name, neighbourhood(name, kind, shape)).to_vector<float>();
    for (std::size_t i = 0; i < 4; ++i) CHECK(values[i] == from_hex(row.at("values")[i]));
    CHECK(values.at(row.at("last_index").get<std::size_t>()) == from_hex(row.at("last_value")));
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    CHECK(sum == Approx(row.at("sum_float64").get<double>()).epsilon(1e-12));
    if (row.contains("where_a_fused_multiply_add_would_differ"))
      for (const auto& [index, pair] : row["where_a_fused_multiply_add_would_differ"].items())
        CHECK(values.at(std::stoul(index)) == from_hex(pair.at("right")));
  }
}

TEST_CASE("Damped models scale the last normalisation of each residual block, and nothing else") {
  const formula::Shapes shapes = {{"bn1.weight", {4}},
                                  {"bn1.running_var", {4}},
                                  {"layer1.0.bn1.weight", {4}},
                                  {"layer1.0.bn2.weight", {4}},
                                  {"layer2.1.bn2.weight", {4}},
                                  {"layer2.1.bn3.weight", {4}},
                                  {"layer2.1.bn3.running_var", {4}},
                                  {"layer2.1.downsample.1.weight", {4}}};
  std::vector<std::string> damped;
  for (const auto& [name, shape] : shapes)
    if (formula::is_last_norm_weight(name, shapes)) damped.push_back(name);
  CHECK(damped == std::vector<std::string>{"layer1.0.bn2.weight", "layer2.1.bn3.weight"});
  const Tensor plain = formula::entry("layer2.1.bn3.weight", shapes);
  const Tensor scaled = formula::entry("layer2.1.bn3.weight", shapes, true);
  CHECK(scaled.to_vector<float>()[0] == 0.25f * plain.to_vector<float>()[0]);
}

TEST_CASE("A tensor is compared with its record under the tolerance rule") {
  const Tensor tensor = Tensor::from<float>({3, -4, 0.5f, 0}, {4});
  const std::vector<float> probe = formula::signed_unit("probe.t", 4);
  const double dot = 3.0 * probe[0] - 4.0 * probe[1] + 0.5 * probe[2];
  const json right = {
      {"n", 4},     {"l2", std::sqrt(25.25)},   {"sum", -0.5},           {"abs_sum", 7.5},
      {"dot", dot}, {"first", {3, -4, 0.5, 0}}, {"err_l2", {1e-7, 1e-6}}};
  CHECK(test::tolerance_of(right) == Approx(8e-6));
  CHECK(test::tolerance_of(right, 0.1) == Approx(0.1 * std::sqrt(25.25)));
  CHECK(test::mismatch(tensor, "t", right) == "");
  for (const char* field : {"l2", "sum", "abs_sum", "dot"}) {
    json wrong = right;
    wrong[field] = right[field].get<double>() + 1e-4;
    CHECK_THAT(test::mismatch(tensor, "t", wrong), Catch::Contains(field));
    CHECK(test::mismatch(tensor, "t", wrong, 1e-3) == "");
  }
  json wrong = right;
  wrong["first"][2] = 0.6;
  CHECK_THAT(test::mismatch(tensor, "t", wrong), Catch::Contains("value 2 is 0.5, expected 0.6"));
  wrong = right;
  wrong["n"] = 5;
  CHECK_THAT(test::mismatch(tensor, "t", wrong), Catch::Contains("4 elements, expected 5"));
  const float nan = std::nanf("");
  CHECK(test::mismatch(Tensor::from<float>({nan, -4, 0.5f, 0}, {4}), "t", right) != "");
}

TEST_CASE("Every case of golden/ops can be read, and PyTorch's own float32 results pass its rule") {
  REQUIRE_SHARED(path, "golden/ops");
  const test::GoldenOps ops(path);
  const json index = test::read_json(path / "index.json");
  std::set<std::string> families;
  for (const json& row : index.at("cases")) families.insert(row.at("family").get<std::string>());
  std::size_t cases = 0;
  for (const std::string& family : families) {
    for (const test::OpCase& op : ops.cases(family)) {
      ++cases;
      if (!op.error().empty()) continue;
      INFO(family << "/" << op.name());
      for (const auto& [input, shape] : op.definition().at("inputs").items())
        CHECK(op.tensor(input).shape() == shape_of(shape));
      for (const std::string& result : op.results()) {
        CHECK(op.mismatch(result, op.tensor(result)) == "");
        if (op.has(result + ".f32")) CHECK(op.mismatch(result, op.tensor(result + ".f32")) == "");
      }
    }
  }
  CHECK(cases == index.at("cases").size());
}

TEST_CASE("A wrong result of an operation is noticed") {
  REQUIRE_SHARED(path, "golden/ops");
  const test::OpCase op = test::GoldenOps(path).cases("conv2d").front();
  Tensor wrong = op.tensor("y").clone();
  wrong.data<float>()[7] += 1e-4f;
  CHECK_THAT(op.mismatch("y", wrong), Catch::Contains("1 of") && Catch::Contains("element 7"));
  CHECK_THAT(op.mismatch("y", op.tensor("x")), Catch::Contains("shape"));
  CHECK_THAT(op.mismatch("y", Tensor()), Catch::Contains("undefined"));
}
