// SPDX-License-Identifier: Apache-2.0
// Conversions between element types, exhaustive where that is cheap.
#include "kernels/cast.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/cast.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using test::Buffer;

namespace {

/// Floats of every exponent, between and on the halves of 16-bit formats; both signs, no NaN.
std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint32_t fraction :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fffu, 0x8000u, 0x8001u,
          0x17fffu, 0x18000u, 0x18001u, 0x7fe000u, 0x7fefffu, 0x7ff000u, 0x7fffffu}) {
      for (const std::uint32_t sign : {0u, 0x80000000u}) {
        const float value = std::bit_cast<float>(sign | exponent << 23 | fraction);
        if (!std::isnan(value)) values.push_back(value);
      }
    }
  }
  return values;
}

template <typename T>
T cast_one(CpuContext& context, double value) {
  Buffer x({1}, DType::f64);
  x.data<double>()[0] = value;
  Buffer y({1}, dtype_of<T>);
  kernels::cast(context, x.view(), y.view());
  return y.data<T>()[0];
}

}  // namespace

TEST_CASE("floats round to the nearest 16-bit float, ties to even, on every instruction set") {
  const std::vector<float> values = interesting_floats();
  const auto n = static_cast<std::int64_t>(values.size());
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer x({n});
    Buffer b({n}, DType::bf16);
    Buffer h({n}, DType::f16);
    Buffer back({n});
    std::copy(values.begin(), values.end(), x.data());
    kernels::cast(context, x.view(), b.view());
    kernels::cast(context, b.view(), back.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto wanted = static_cast<float>(kernels::reference::nearest_bfloat16(values[i]));
      INFO(values[i]);
      REQUIRE(std::bit_cast<std::uint32_t>(back.data()[i]) == std::bit_cast<std::uint32_t>(wanted));
    }
    kernels::cast(context, x.view(), h.view());
    kernels::cast(context, h.view(), back.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto wanted = static_cast<float>(kernels::reference::nearest_float16(values[i]));
      INFO(values[i]);
      REQUIRE(std::bit_cast<std::uint32_t>(back.data()[i]) == std::bit_cast<std::uint32_t>(wanted));
    }
  }
}

TEST_CASE("all 65536 16-bit floats survive a round trip through float") {
  CpuContext context({.threads = 2});
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Buffer x({65536}, dtype);
    Buffer wide({65536});
    Buffer y({65536}, dtype);
    for (int i = 0; i < 65536; ++i) x.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    kernels::cast(context, x.view(), wide.view());
    kernels::cast(context, wide.view(), y.view());
    for (int i = 0; i < 65536; ++i) {
      if (std::isnan(wide.data()[i])) {
        const float again = dtype == DType::bf16 ? static_cast<float>(y.data<bfloat16>()[i])
                                                 : static_cast<float>(y.data<float16>()[i]);
        REQUIRE(std::isnan(again));
      } else {
        REQUIRE(y.data<std::uint16_t>()[i] == i);
      }
    }
  }
}

TEST_CASE("floats become integers by truncation, out of range by the nearest, NaN by 0") {
  CpuContext context;
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(cast_one<std::int32_t>(context, -2.9) == -2);
  CHECK(cast_one<std::uint8_t>(context, 255.5) == 255);
  CHECK(cast_one<std::uint8_t>(context, -1) == 0);
  CHECK(cast_one<std::int8_t>(context, 1e9) == 127);
  CHECK(cast_one<std::int64_t>(context, inf) == std::numeric_limits<std::int64_t>::max());
  CHECK(cast_one<std::int64_t>(context, -inf) == std::numeric_limits<std::int64_t>::min());
  CHECK(cast_one<std::int32_t>(context, std::nan("")) == 0);
}

TEST_CASE("anything but zero is true, and true is one") {
  CpuContext context;
  CHECK(cast_one<bool>(context, 0.5));
  CHECK(cast_one<bool>(context, std::nan("")));
  CHECK_FALSE(cast_one<bool>(context, -0.0));
  Buffer flags({2}, DType::boolean);
  flags.data<bool>()[1] = true;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Buffer y({2}, dtype);
    kernels::cast(context, flags.view(), y.view());
    CHECK(test::values_of(y.view()) == std::vector<double>{0, 1});
  }
}

TEST_CASE("every pair of types converts small integers exactly, at any length") {
  CpuContext context({.threads = 2});
  const std::vector<DType> types{DType::f32, DType::f64, DType::bf16, DType::f16,
                                 DType::u8,  DType::i8,  DType::i32,  DType::i64};
  for (const std::int64_t n : {0, 1, 63, 1000}) {
    Buffer source({n}, DType::u8);
    for (std::int64_t i = 0; i < n; ++i) source.data<std::uint8_t>()[i] = i % 100;
    for (const DType from : types) {
      for (const DType to : types) {
        INFO(name_of(from) << " -> " << name_of(to));
        Buffer x({n}, from);
        Buffer y({n}, to);
        Buffer back({n}, DType::u8);
        kernels::cast(context, source.view(), x.view());
        kernels::cast(context, x.view(), y.view());
        kernels::cast(context, y.view(), back.view());
        REQUIRE(std::memcmp(back.view().data, source.view().data, source.view().bytes()) == 0);
      }
    }
  }
}
