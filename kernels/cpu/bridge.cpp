// SPDX-License-Identifier: Apache-2.0
// Serial stand-ins for kernels whose vectorised versions are on their way; weak, so theirs win.
// Goes when they land.
#include <cstring>

#include "kernels/cast.hpp"
#include "kernels/cpu/convolutions.hpp"
#include "kernels/pointwise.hpp"

namespace collar::kernels {

[[gnu::weak]] void fill_host(View y, double value) {
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    switch (y.dtype) {
      case DType::f32:
        y.as<float>()[i] = static_cast<float>(value);
        break;
      case DType::f64:
        y.as<double>()[i] = value;
        break;
      case DType::bf16:
        y.as<bfloat16>()[i] = bfloat16(static_cast<float>(value));
        break;
      case DType::f16:
        y.as<float16>()[i] = float16(static_cast<float>(value));
        break;
      case DType::u8:
        y.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
        break;
      case DType::i8:
        y.as<std::int8_t>()[i] = static_cast<std::int8_t>(value);
        break;
      case DType::i32:
        y.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
        break;
      case DType::i64:
        y.as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
        break;
      case DType::boolean:
        y.as<bool>()[i] = value != 0;
        break;
    }
  }
}
[[gnu::weak]] void fill(CpuContext&, View y, double value) {
  fill_host(y, value);
}
[[gnu::weak]] void add_in_place(CpuContext&, View y, ConstView x) {
  for (std::int64_t i = 0; i < y.numel(); ++i) y.as<float>()[i] += x.as<float>()[i];
}
[[gnu::weak]] void cast(CpuContext&, ConstView x, View y) {
  std::memcpy(y.data, x.data, y.bytes());
}

struct CpuConvolutions::State {};
[[gnu::weak]] CpuConvolutions::CpuConvolutions(const CpuContext&) {}
[[gnu::weak]] CpuConvolutions::~CpuConvolutions() = default;

}  // namespace collar::kernels
