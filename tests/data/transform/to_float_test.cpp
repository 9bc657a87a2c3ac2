// SPDX-License-Identifier: Apache-2.0
#include "data/transform/to_float.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "data/transform/preprocessing.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using nlohmann::json;

namespace {

float from_hex(const json& text) {
  return std::strtof(text.get<std::string>().c_str(), nullptr);
}

}  // namespace

TEST_CASE("Bytes become the floats of ToDtype, ToTensor and Normalize") {
  REQUIRE_SHARED(path, "golden/data/transforms.json");
  const json golden = test::read_json(path);
  const data::ToFloat to_dtype;
  const data::ToFloat to_tensor({.scaling = data::ByteScaling::divide});
  const data::ToFloat dtype_normalised(
      {data::ByteScaling::multiply, data::kImageNetMean, data::kImageNetStd});
  const data::ToFloat tensor_normalised(
      {data::ByteScaling::divide, data::kImageNetMean, data::kImageNetStd});
  int wrong = 0;
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    const auto at = static_cast<std::size_t>(i);
    wrong += to_dtype.value(0, byte) != from_hex(golden.at("v2_to_dtype_scale")[at]);
    wrong += to_tensor.value(2, byte) != from_hex(golden.at("v1_to_tensor")[at]);
    for (int c = 0; c < 3; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      wrong += dtype_normalised.value(c, byte) !=
               from_hex(golden.at("normalize_after_v2_to_dtype").at("channels")[channel][at]);
      wrong += tensor_normalised.value(c, byte) !=
               from_hex(golden.at("normalize_after_v1_to_tensor").at("channels")[channel][at]);
    }
  }
  CHECK(wrong == 0);
}
