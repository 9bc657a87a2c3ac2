// SPDX-License-Identifier: Apache-2.0
// Element by element: broadcasting, ReLU and its mask, dropout, fill and scale.
#include "kernels/pointwise.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/core/error.hpp"
#include "kernels/reference/pointwise.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using kernels::BinaryOp;
using kernels::DropoutKey;
using test::Buffer;
using test::same_bits;

namespace {

/// Lengths around the widths of registers, of mask bytes, and of a parallel region.
const std::vector<std::int64_t> kLengths{0, 1, 7, 8, 15, 16, 17, 64, 1000, 70001};

}  // namespace

TEST_CASE("arithmetic broadcasts as NumPy's does") {
  struct Case {
    Shape a, b, y;
  };
  const std::vector<Case> cases{{{2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
                                {{2, 3, 4, 5}, {1, 3, 1, 1}, {2, 3, 4, 5}},
                                {{2, 3, 4, 5}, {5}, {2, 3, 4, 5}},
                                {{2, 3, 4, 5}, {}, {2, 3, 4, 5}},
                                {{4, 1}, {1, 6}, {4, 6}},
                                {{2, 1, 4, 1}, {3, 1, 5}, {2, 3, 4, 5}},
                                {{37}, {4, 37}, {4, 37}},
                                {{1}, {3, 3}, {3, 3}},
                                {{}, {}, {}},
                                {{0, 3}, {1, 3}, {0, 3}},
                                {{64, 1, 700}, {64, 3, 1}, {64, 3, 700}}};
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const Case& c : cases) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const BinaryOp op : {BinaryOp::add, BinaryOp::subtract, BinaryOp::multiply}) {
          INFO(name_of(isa) << " " << to_string(c.a) << " " << to_string(c.b));
          Buffer a(c.a, dtype);
          Buffer b(c.b, dtype);
          Buffer y(c.y, dtype);
          Buffer exact(c.y, dtype);
          a.randomize(1);
          b.randomize(2);
          kernels::binary(context, op, a.view(), b.view(), y.view());
          kernels::reference::binary(op, a.view(), b.view(), exact.view());
          REQUIRE(same_bits(y, exact));
        }
      }
    }
  }
}

TEST_CASE("ReLU, its mask and its gradient agree with their definition at every length") {
  for (const Isa isa : test::isas_here()) {
    for (const int threads : {1, 2}) {
      CpuContext context({.threads = threads, .isa = isa});
      for (const std::int64_t n : kLengths) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          INFO(name_of(isa) << " " << n << " " << name_of(dtype));
          const Shape bits{(n + 7) / 8};
          Buffer x({n}, dtype);
          Buffer dy({n}, dtype);
          x.randomize(1);
          dy.randomize(2);
          Buffer y({n}, dtype);
          Buffer dx({n}, dtype);
          Buffer mask(bits, DType::u8);
          Buffer exact({n}, dtype);
          Buffer exact_dx({n}, dtype);
          Buffer exact_mask(bits, DType::u8);
          kernels::relu_forward(context, x.view(), y.view(), mask.view());
          kernels::reference::relu_forward(x.view(), exact.view(), exact_mask.view());
          REQUIRE(same_bits(y, exact));
          REQUIRE(same_bits(mask, exact_mask));
          kernels::relu_backward(context, dy.view(), mask.view(), dx.view());
          kernels::reference::relu_backward(dy.view(), mask.view(), exact_dx.view());
          REQUIRE(same_bits(dx, exact_dx));
          kernels::relu_forward(context, x.view(), x.view(), {});
          REQUIRE(same_bits(x, exact));
        }
      }
    }
  }
}

TEST_CASE("ReLU keeps NaN and -0; the gradient passes at NaN and stops at zeros") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer x({16});
    Buffer y({16});
    Buffer mask({2}, DType::u8);
    const std::vector<float> special{std::numeric_limits<float>::quiet_NaN(), 0, -0.0f, inf, -inf};
    for (std::size_t i = 0; i < special.size(); ++i) x.data()[i] = special[i];
    kernels::relu_forward(context, x.view(), y.view(), mask.view());
    CHECK(std::isnan(y.data()[0]));
    CHECK_FALSE(std::signbit(y.data()[1]));
    CHECK(std::signbit(y.data()[2]));
    CHECK(y.data()[3] == inf);
    CHECK(y.data()[4] == 0);
    CHECK(mask.data<std::uint8_t>()[0] == 0b01001);

    Buffer dy({16});
    Buffer dx({16});
    for (int i = 0; i < 16; ++i) dy.data()[i] = std::numeric_limits<float>::quiet_NaN();
    kernels::relu_backward(context, dy.view(), mask.view(), dx.view());
    CHECK(std::isnan(dx.data()[0]));
    CHECK(dx.data()[1] == 0);  // stopped, not multiplied by zero
  }
}

TEST_CASE("fill converts its value to every type, scale and add round once") {
  CpuContext context({.threads = 2});
  Buffer bytes({70001}, DType::u8);
  kernels::fill(context, bytes.view(), 7);
  CHECK(bytes.data<std::uint8_t>()[70000] == 7);
  Buffer longs({3}, DType::i64);
  kernels::fill(context, longs.view(), -3);
  CHECK(longs.data<std::int64_t>()[2] == -3);
  Buffer halves({3}, DType::bf16);
  kernels::fill_host(halves.view(), 1.0 / 3);
  CHECK(halves.data<bfloat16>()[2].bits == 0x3eab);
  Buffer flags({3}, DType::boolean);
  kernels::fill(context, flags.view(), 1);
  CHECK(flags.data<bool>()[2]);

  for (const Isa isa : test::isas_here()) {
    CpuContext own({.threads = 2, .isa = isa});
    Buffer y({70001});
    Buffer x({70001});
    y.randomize(1);
    x.randomize(2);
    const float before = y.data()[70000];
    kernels::scale(own, y.view(), y.view(), 0.3f);
    CHECK(y.data()[70000] == before * 0.3f);
    kernels::add_in_place(own, y.view(), x.view());
    CHECK(y.data()[70000] == before * 0.3f + x.data()[70000]);
  }
}

TEST_CASE("types without vector loops are scaled, added and broadcast one by one") {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    Buffer half({70001}, DType::f16);
    kernels::fill(context, half.view(), 0.5);
    kernels::scale(context, half.view(), half.view(), 3);
    kernels::add_in_place(context, half.view(), half.view());
    CHECK(static_cast<float>(half.data<float16>()[70000]) == 3);

    Buffer matrix({2, 3}, DType::f64);
    Buffer row({3}, DType::f64);
    kernels::fill(context, matrix.view(), 1);
    kernels::fill(context, row.view(), 0x1p-40);
    kernels::binary(context, BinaryOp::add, matrix.view(), row.view(), matrix.view());
    CHECK(matrix.data<double>()[5] == 1 + 0x1p-40);  // more than a float can hold
  }
  CpuContext context;
  Buffer bytes({4}, DType::u8);
  CHECK_THROWS_AS(kernels::add_in_place(context, bytes.view(), bytes.view()), ShapeError);
  CHECK_THROWS_AS(kernels::scale(context, bytes.view(), bytes.view(), 2), ShapeError);
}

TEST_CASE("a dropout mask is the same in every layout") {
  CpuContext context({.threads = 2});
  const Shape shape{3, 16, 5, 7};
  Buffer plain(shape);
  kernels::fill(context, plain.view(), 1);
  kernels::dropout(context, plain.view(), plain.view(), 0.4, {.seed = 5});
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    Buffer other(shape, DType::f32, layout);
    Buffer back(shape);
    kernels::fill(context, other.view(), 1);
    kernels::dropout(context, other.view(), other.view(), 0.4, {.seed = 5});
    kernels::convert_layout(context, other.view(), back.view());
    CHECK(same_bits(plain, back));
  }
}

TEST_CASE("a dropout mask is a function of its key, the same forward and backward") {
  CpuContext context({.threads = 2});
  Buffer ones({70001});
  kernels::fill(context, ones.view(), 1);
  const auto dropped = [&](Buffer& y, double p, const DropoutKey& key) {
    kernels::dropout(context, ones.view(), y.view(), p, key);
  };
  const DropoutKey key{.seed = 42, .step = 7, .rank = 1, .micro = 2, .layer = 3};
  Buffer y({70001});
  dropped(y, 0.2, key);
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < 70001; ++i) {
    REQUIRE((y.data()[i] == 0 || y.data()[i] == 1.25f));
    kept += y.data()[i] != 0 ? 1 : 0;
  }
  CHECK(std::abs(static_cast<double>(kept) / 70001 - 0.8) < 0.006);  // 4 standard deviations

  CpuContext alone({.threads = 1});
  Buffer again({70001});
  kernels::dropout(alone, ones.view(), again.view(), 0.2, key);
  CHECK(same_bits(y, again));

  for (const DropoutKey& other :
       {DropoutKey{43, 7, 1, 2, 3}, DropoutKey{42, 8, 1, 2, 3}, DropoutKey{42, 7, 0, 2, 3},
        DropoutKey{42, 7, 1, 3, 3}, DropoutKey{42, 7, 1, 2, 4}}) {
    dropped(again, 0.2, other);
    CHECK_FALSE(same_bits(y, again));
  }
  dropped(again, 0, key);
  CHECK(same_bits(again, ones));
  dropped(again, 1, key);
  for (std::int64_t i = 0; i < 70001; ++i) REQUIRE(again.data()[i] == 0);
}

TEST_CASE("a dropped bf16 element is rounded once") {
  CpuContext context;
  Buffer x({64}, DType::bf16);
  x.randomize(1);
  Buffer y({64}, DType::bf16);
  kernels::dropout(context, x.view(), y.view(), 0.3, {.seed = 5});
  const float scale = 1.0f / 0.7f;
  for (int i = 0; i < 64; ++i) {
    const auto kept = bfloat16(static_cast<float>(x.data<bfloat16>()[i]) * scale);
    const std::uint16_t bits = y.data<bfloat16>()[i].bits;
    CHECK((bits == kept.bits || (bits & 0x7fff) == 0));
  }
}
