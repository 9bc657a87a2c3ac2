// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/dtype.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 9> kNames{{{DType::f32, "f32"},
                                                                    {DType::f64, "f64"},
                                                                    {DType::bf16, "bf16"},
                                                                    {DType::f16, "f16"},
                                                                    {DType::u8, "u8"},
                                                                    {DType::i8, "i8"},
                                                                    {DType::i32, "i32"},
                                                                    {DType::i64, "i64"},
                                                                    {DType::boolean, "bool"}}};

}  // namespace

std::string_view name_of(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) return name;
  }
  return "unknown";
}

DType dtype_from_name(std::string_view name) {
  std::string known;
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  throw UsageError(fmt::format("unknown data type '{}': expected one of {}", name, known));
}

}  // namespace collar
