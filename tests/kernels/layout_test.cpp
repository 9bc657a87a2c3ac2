// SPDX-License-Identifier: Apache-2.0
// Layouts: where elements lie, and the one function that moves them.
#include "kernels/core/layout.hpp"

#include <catch2/catch.hpp>

#include <cstring>

#include "kernels/cast.hpp"
#include "kernels/core/image_index.hpp"
#include "kernels/reference/layout.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using test::Buffer;

TEST_CASE("element (n, c, h, w) lies where the layout says") {
  const Shape shape{2, 32, 3, 5};
  const auto at = [&](Layout layout) { return kernels::ImageIndex(shape, layout)(1, 19, 2, 4); };
  CHECK(at(Layout::plain) == ((1 * 32 + 19) * 3 + 2) * 5 + 4);
  CHECK(at(Layout::channels_last) == ((1 * 3 + 2) * 5 + 4) * 32 + 19);
  CHECK(at(Layout::blocked8) == (((1 * 4 + 2) * 3 + 2) * 5 + 4) * 8 + 3);
  CHECK(at(Layout::blocked16) == (((1 * 2 + 1) * 3 + 2) * 5 + 4) * 16 + 3);
}

TEST_CASE("conversion of layouts and types puts every element where the definition does") {
  CpuContext context({.threads = 3});
  for (const Shape& shape : {Shape{2, 48, 13, 7}, Shape{1, 16, 1, 1}, Shape{3, 80, 9, 9}}) {
    for (const Layout from :
         {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
      for (const Layout to :
           {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
        for (const DType x_type : {DType::f32, DType::bf16}) {
          for (const DType y_type : {DType::f32, DType::bf16}) {
            INFO(to_string(shape) << " " << name_of(x_type) << " " << name_of(from) << " -> "
                                  << name_of(y_type) << " " << name_of(to));
            Buffer x(shape, x_type, from);
            Buffer y(shape, y_type, to);
            Buffer exact(shape, y_type, to);
            x.randomize(1);
            kernels::convert_layout(context, x.view(), y.view());
            kernels::reference::convert_layout(x.view(), exact.view());
            REQUIRE(std::memcmp(y.view().data, exact.view().data, y.view().bytes()) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("channels that fill no block convert between the layouts without blocks") {
  CpuContext context({.threads = 2});
  Buffer x({2, 5, 7, 3});
  Buffer last({2, 5, 7, 3}, DType::f32, Layout::channels_last);
  Buffer back({2, 5, 7, 3});
  x.randomize(1);
  kernels::convert_layout(context, x.view(), last.view());
  kernels::convert_layout(context, last.view(), back.view());
  CHECK(last.data()[1] == x.data()[7 * 3]);
  CHECK(std::memcmp(x.data(), back.data(), x.view().bytes()) == 0);
}

TEST_CASE("the context counts conversions and the bytes they write") {
  CpuContext context({.threads = 1});
  Buffer x({2, 16, 3, 3});
  Buffer y({2, 16, 3, 3}, DType::bf16, Layout::blocked16);
  Buffer none({0, 16, 3, 3});
  kernels::convert_layout(context, x.view(), y.view());
  kernels::convert_layout(context, none.view(), none.view());
  CHECK(context.conversions().count == 2);
  CHECK(context.conversions().bytes == 2 * 16 * 9 * 2);
}
