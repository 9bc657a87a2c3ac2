// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/dtype.hpp"

#include "kernels/core/names.hpp"

namespace collar {
namespace {

constexpr NameTable<DType, 9> kNames{{{DType::f32, "f32"},
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
  return name_in(kNames, dtype);
}

DType dtype_from_name(std::string_view name) {
  return value_in(kNames, "data type", name);
}

}  // namespace collar
