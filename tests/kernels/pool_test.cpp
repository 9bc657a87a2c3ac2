// SPDX-License-Identifier: Apache-2.0
// Pooling against PyTorch's rules, written out window by window.
#include "kernels/pool.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/core/error.hpp"
#include "kernels/reference/pool.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using kernels::Pool2dGeometry;
using test::Buffer;
using test::same_bits;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Layout> layouts_of(std::int64_t channels) {
  if (channels % 16 != 0) return {Layout::plain, Layout::channels_last};
  return {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};
}

struct Case {
  Shape shape;
  Pool2dGeometry geometry;
};

const Pool2dGeometry kStem{{3, 3}, {2, 2}, {1, 1}, {1, 1}};
const Pool2dGeometry kShortcut{{2, 2}, {2, 2}, {0, 0}, {1, 1}, true, false};

std::vector<Case> max_cases() {
  return {{{2, 16, 12, 9}, kStem},
          {{2, 19, 7, 8}, kStem},
          {{1, 16, 1, 1}, kStem},
          {{3, 32, 6, 5}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}},
          {{1, 16, 11, 13}, {{3, 2}, {1, 2}, {1, 1}, {2, 3}}},
          {{1, 16, 9, 9}, {{2, 3}, {3, 2}, {1, 0}, {1, 1}, true}}};
}

std::vector<Case> average_cases() {
  return {{{2, 16, 12, 9}, kShortcut},
          {{2, 19, 7, 8}, kShortcut},
          {{1, 16, 1, 1}, kShortcut},
          {{2, 16, 7, 7}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true}},
          {{2, 16, 7, 6}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true, true}},
          {{2, 16, 7, 6}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true, false}},
          {{1, 16, 8, 8}, {{3, 2}, {1, 3}, {1, 0}, {1, 1}}}};
}

/// body(context, case, type, layout) for everything that can be combined here.
template <typename Body>
void for_each(const std::vector<Case>& cases, const Body& body) {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const Case& c : cases) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const Layout layout : layouts_of(c.shape[1])) {
          INFO(name_of(isa) << " " << to_string(c.shape) << " " << name_of(dtype) << " "
                            << name_of(layout) << " kernel " << c.geometry.kernel[0]);
          body(context, c, dtype, layout);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("max pooling takes the values and winners that PyTorch takes") {
  for_each(max_cases(), [](CpuContext& context, const Case& c, DType dtype, Layout layout) {
    const Shape shape = kernels::pool2d_output_shape(c.shape, c.geometry);
    Buffer x(c.shape, dtype, layout);
    x.randomize(1);
    Buffer y(shape, dtype, layout);
    Buffer index(shape, DType::i32, layout);
    Buffer exact(shape, dtype, layout);
    Buffer exact_index(shape, DType::i32, layout);
    kernels::max_pool2d_forward(context, x.view(), y.view(), index.view(), c.geometry);
    kernels::reference::max_pool2d_forward(x.view(), exact.view(), exact_index.view(), c.geometry);
    REQUIRE(same_bits(y, exact));
    REQUIRE(same_bits(index, exact_index));

    Buffer without(shape, dtype, layout);
    kernels::max_pool2d_forward(context, x.view(), without.view(), {}, c.geometry);
    REQUIRE(same_bits(without, exact));

    Buffer dy(shape, dtype, layout);
    dy.randomize(2);
    Buffer dx(c.shape, dtype, layout);
    Buffer exact_dx(c.shape, dtype, layout);
    kernels::max_pool2d_backward(context, dy.view(), index.view(), dx.view(), c.geometry);
    kernels::reference::max_pool2d_backward(dy.view(), index.view(), exact_dx.view());
    test::require_close(dx.view(), exact_dx.view(), 4);
  });
}

TEST_CASE("of equal values the first wins, of NaNs the last, and a window of -inf has a winner") {
  for (const Isa isa : test::isas_here()) {
    for (const Layout layout : {Layout::plain, Layout::blocked16}) {
      CpuContext context({.isa = isa});
      const Pool2dGeometry whole{{2, 2}, {2, 2}};
      Buffer x({1, 16, 2, 2}, DType::f32, layout);
      Buffer y({1, 16, 1, 1}, DType::f32, layout);
      Buffer index({1, 16, 1, 1}, DType::i32, layout);
      const auto winner = [&](std::vector<float> window) {
        for (std::size_t pixel = 0; pixel < 4; ++pixel) {  // channel 0 of a plain or blocked tensor
          x.data()[pixel * (layout == Layout::plain ? 1 : 16)] = window[pixel];
        }
        kernels::max_pool2d_forward(context, x.view(), y.view(), index.view(), whole);
        return index.data<std::int32_t>()[0];
      };
      CHECK(winner({1, 3, 3, 2}) == 1);
      CHECK(winner({0.0f, -0.0f, -1, -2}) == 0);
      CHECK_FALSE(std::signbit(y.data()[0]));
      CHECK(winner({-0.0f, 0.0f, -1, -2}) == 0);
      CHECK(std::signbit(y.data()[0]));
      CHECK(winner({1, kNan, 5, 2}) == 1);
      CHECK(winner({1, kNan, 5, kNan}) == 3);
      CHECK(std::isnan(y.data()[0]));
      CHECK(winner({-kInf, -kInf, -kInf, -kInf}) == 0);
      CHECK(y.data()[0] == -kInf);
    }
  }
}

TEST_CASE("average pooling and its gradient agree with their definition") {
  for_each(average_cases(), [](CpuContext& context, const Case& c, DType dtype, Layout layout) {
    const Shape shape = kernels::pool2d_output_shape(c.shape, c.geometry);
    Buffer x(c.shape, dtype, layout);
    x.randomize(1);
    Buffer y(shape, dtype, layout);
    Buffer exact(shape, dtype, layout);
    kernels::avg_pool2d_forward(context, x.view(), y.view(), c.geometry);
    kernels::reference::avg_pool2d_forward(x.view(), exact.view(), c.geometry);
    test::require_close(y.view(), exact.view(), 9);

    Buffer dy(shape, dtype, layout);
    dy.randomize(2);
    Buffer dx(c.shape, dtype, layout);
    Buffer exact_dx(c.shape, dtype, layout);
    kernels::avg_pool2d_backward(context, dy.view(), dx.view(), c.geometry);
    kernels::reference::avg_pool2d_backward(dy.view(), exact_dx.view(), c.geometry);
    test::require_close(dx.view(), exact_dx.view(), 9);
  });
}

TEST_CASE("global average pooling and its gradient agree with their definition") {
  const std::vector<Case> cases{
      {{2, 16, 7, 7}, {}}, {{3, 19, 13, 16}, {}}, {{3, 32, 1, 1}, {}}, {{1, 17, 3, 5}, {}}};
  for_each(cases, [](CpuContext& context, const Case& c, DType dtype, Layout layout) {
    const Shape means{c.shape[0], c.shape[1]};
    Buffer x(c.shape, dtype, layout);
    x.randomize(1);
    Buffer y(means, dtype);
    Buffer exact(means, dtype);
    kernels::global_avg_pool_forward(context, x.view(), y.view());
    kernels::reference::global_avg_pool_forward(x.view(), exact.view());
    test::require_close(y.view(), exact.view(), 49);

    Buffer dy(means, dtype);
    dy.randomize(2);
    Buffer dx(c.shape, dtype, layout);
    Buffer exact_dx(c.shape, dtype, layout);
    kernels::global_avg_pool_backward(context, dy.view(), dx.view());
    kernels::reference::global_avg_pool_backward(dy.view(), exact_dx.view());
    test::require_close(dx.view(), exact_dx.view(), 1);
  });
}

TEST_CASE("output extents follow PyTorch's rules") {
  const auto extents = [](std::int64_t in, const Pool2dGeometry& geometry) {
    return kernels::pool2d_output_shape({1, 1, in, in}, geometry)[2];
  };
  CHECK(extents(112, kStem) == 56);
  CHECK(extents(7, kStem) == 4);
  CHECK(extents(7, kShortcut) == 4);
  CHECK(extents(1, kShortcut) == 1);
  // ceil_mode would give 4 windows; the last one would start in the right padding.
  CHECK(extents(6, {{2, 2}, {3, 3}, {1, 1}, {1, 1}, true}) == 3);
  CHECK(extents(9, {{3, 3}, {1, 1}, {0, 0}, {2, 2}}) == 5);
  CHECK_THROWS_AS(extents(2, {{3, 3}, {1, 1}}), ShapeError);
}

TEST_CASE("pooling gives the same bits on any number of threads") {
  const Shape shape{3, 32, 37, 41};
  const Shape pooled = kernels::pool2d_output_shape(shape, kStem);
  for (const Layout layout : {Layout::blocked16, Layout::plain}) {
    CpuContext one({.threads = 1});
    CpuContext many({.threads = 3});
    Buffer x(shape, DType::f32, layout);
    x.randomize(1);
    Buffer dy(pooled, DType::f32, layout);
    dy.randomize(2);
    Buffer index(pooled, DType::i32, layout);
    Buffer y1(pooled, DType::f32, layout);
    Buffer y3(pooled, DType::f32, layout);
    Buffer dx1(shape, DType::f32, layout);
    Buffer dx3(shape, DType::f32, layout);
    kernels::max_pool2d_forward(one, x.view(), y1.view(), index.view(), kStem);
    kernels::max_pool2d_forward(many, x.view(), y3.view(), index.view(), kStem);
    CHECK(same_bits(y1, y3));
    kernels::max_pool2d_backward(one, dy.view(), index.view(), dx1.view(), kStem);
    kernels::max_pool2d_backward(many, dy.view(), index.view(), dx3.view(), kStem);
    CHECK(same_bits(dx1, dx3));
  }
}
