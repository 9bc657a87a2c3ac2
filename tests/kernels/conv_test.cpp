// SPDX-License-Identifier: Apache-2.0
// The convolution of this build against its definition.
#include "kernels/conv.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <thread>
#include <vector>

#include "bench/resnet50d.hpp"
#include "kernels/core/error.hpp"
#include "kernels/cpu/convolutions.hpp"
#include "kernels/reference/conv.hpp"
#include "tests/kernels/buffers.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using kernels::Conv2dGeometry;
using kernels::Conv2dLayouts;
using test::Buffer;

namespace {

struct Case {
  const char* name;
  Shape x;
  Shape w;
  Conv2dGeometry geometry;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"stem 3x3", {2, 3, 17, 13}, {32, 3, 3, 3}, {{2, 2}, {1, 1}}},
      {"stem 7x7", {2, 3, 23, 20}, {16, 3, 7, 7}, {{2, 2}, {3, 3}}},
      {"1x1", {2, 32, 7, 9}, {16, 32, 1, 1}, {}},
      {"1x1 strided", {1, 32, 9, 7}, {48, 32, 1, 1}, {{2, 2}}},
      {"3x3", {2, 16, 10, 7}, {32, 16, 3, 3}, {{1, 1}, {1, 1}}},
      {"3x3 strided", {5, 32, 9, 10}, {32, 32, 3, 3}, {{2, 2}, {1, 1}}},
      {"3x3 without padding", {1, 16, 5, 6}, {16, 16, 3, 3}, {}},
      {"3x3 dilated", {2, 16, 11, 12}, {16, 16, 3, 3}, {{1, 1}, {2, 2}, {2, 2}}},
      {"odd channels", {2, 5, 8, 9}, {7, 5, 3, 3}, {{1, 1}, {1, 1}}},
      {"one channel in", {2, 1, 8, 9}, {16, 1, 3, 3}, {{1, 1}, {1, 1}}},
      {"one channel out", {2, 16, 8, 9}, {1, 16, 3, 3}, {{1, 1}, {1, 1}}},
      {"24 channels", {2, 24, 6, 7}, {40, 24, 3, 3}, {{1, 1}, {1, 1}}},
      {"15 channels 5x5", {1, 15, 12, 9}, {24, 15, 5, 5}, {{3, 2}, {2, 1}}},
      {"kernel 1x3", {2, 16, 6, 8}, {16, 16, 1, 3}, {{1, 2}, {0, 1}}},
      {"kernel of the whole image", {2, 16, 4, 5}, {32, 16, 4, 5}, {}},
      {"one pixel", {5, 32, 1, 1}, {16, 32, 3, 3}, {{1, 1}, {1, 1}}},
      {"2 groups", {2, 32, 7, 6}, {64, 16, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 2}},
      {"3 odd groups", {2, 15, 7, 6}, {6, 5, 3, 3}, {{2, 1}, {1, 1}, {1, 1}, 3}},
      {"depthwise", {2, 32, 7, 6}, {32, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 32}},
  };
  return all;
}

// Large enough for several threads to have work.
const Case kLarge{"large", {4, 64, 14, 14}, {64, 64, 3, 3}, {{1, 1}, {1, 1}}};

std::vector<Conv2dLayouts> layouts_to_try(const CpuContext& context, const Case& c) {
  const Conv2dLayouts preferred = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
  if (preferred.y == Layout::plain) return {preferred};
  return {preferred, {Layout::plain, Layout::plain}};
}

// Forward and both gradients of one case in one layout.
void check(CpuContext& context, const Case& c, DType dtype, Conv2dLayouts layouts) {
  const Shape y_shape = kernels::conv2d_output_shape(c.x, c.w, c.geometry);
  const auto taps = static_cast<double>(c.w[1] * c.w[2] * c.w[3]);
  const auto positions = static_cast<double>(y_shape[0] * y_shape[2] * y_shape[3]);
  Buffer x(c.x, dtype, layouts.x);
  Buffer w(c.w);
  Buffer bias({c.w[0]});
  PackedWeights packed;
  const Weight weight{w.randomize(2).view(), 1, &packed};
  x.randomize(1);
  bias.randomize(3);

  Buffer y(y_shape, dtype, layouts.y);
  Buffer y_exact(y_shape, dtype, layouts.y);
  for (const View& some_bias : {View{}, bias.view()}) {
    kernels::conv2d_forward(context, x.view(), weight, some_bias, y.view(), c.geometry);
    kernels::reference::conv2d_forward(x.view(), w.view(), some_bias, y_exact.view(), c.geometry);
    INFO("forward, bias " << bool{some_bias});
    test::require_close(y.view(), y_exact.view(), taps);
  }

  Buffer dy(y_shape, dtype, layouts.y);
  dy.randomize(4);
  {
    Buffer dx(c.x, dtype, layouts.x);
    Buffer exact(c.x, dtype, layouts.x);
    kernels::conv2d_backward_data(context, dy.view(), weight, dx.view(), c.geometry);
    kernels::reference::conv2d_backward_data(dy.view(), w.view(), exact.view(), c.geometry);
    INFO("backward data");
    test::require_close(dx.view(), exact.view(),
                        taps * static_cast<double>(c.w[0]) / static_cast<double>(c.w[1]));
  }
  Buffer exact(c.w);
  Buffer bias_exact({c.w[0]});
  kernels::reference::conv2d_backward_weights(x.view(), dy.view(), exact.view(), bias_exact.view(),
                                              false, c.geometry);
  {
    Buffer dw(c.w);
    dw.randomize(5);
    kernels::conv2d_backward_weights(context, x.view(), dy.view(), dw.view(), {}, false,
                                     c.geometry);
    INFO("backward weights");
    test::require_close(dw.view(), exact.view(), positions);
  }
  Buffer dw(c.w);
  Buffer dbias({c.w[0]});
  dbias.randomize(6);
  kernels::conv2d_backward_weights(context, x.view(), dy.view(), dw.view(), dbias.view(), false,
                                   c.geometry);
  {
    INFO("backward weights and bias");
    test::require_close(dw.view(), exact.view(), positions);
    test::require_close(dbias.view(), bias_exact.view(), positions);
  }
  kernels::conv2d_backward_weights(context, x.view(), dy.view(), dw.view(), dbias.view(), true,
                                   c.geometry);
  for (std::int64_t i = 0; i < c.w.numel(); ++i) exact.data()[i] *= 2.0F;
  for (std::int64_t i = 0; i < c.w[0]; ++i) bias_exact.data()[i] *= 2.0F;
  INFO("accumulated");
  test::require_close(dw.view(), exact.view(), positions);
  test::require_close(dbias.view(), bias_exact.view(), positions);
}

void check_all(const std::vector<Isa>& isas, DType dtype) {
  for (const Isa isa : isas) {
    for (const int threads : {1, 3}) {
      CpuContext context({.threads = threads, .isa = isa});
      for (const Case& c : cases()) {
        for (const Conv2dLayouts layouts : layouts_to_try(context, c)) {
          INFO(c.name << ", " << name_of(isa) << ", " << threads << " threads, "
                      << name_of(layouts.x) << " -> " << name_of(layouts.y));
          check(context, c, dtype, layouts);
        }
      }
    }
  }
}

bool uses_vendor_library() {
  return kernels::CpuConvolutions::description().find("oneDNN") != std::string::npos;
}

void run(CpuContext& context, const Case& c, DType dtype) {
  const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
  Buffer x(c.x, dtype, layouts.x);
  Buffer w(c.w);
  Buffer y(kernels::conv2d_output_shape(c.x, c.w, c.geometry), dtype, layouts.y);
  PackedWeights packed;
  const Weight weight{w.view(), 1, &packed};
  kernels::conv2d_forward(context, x.view(), weight, {}, y.view(), c.geometry);
  if (c.x[1] > 3) kernels::conv2d_backward_data(context, y.view(), weight, x.view(), c.geometry);
  kernels::conv2d_backward_weights(context, x.view(), y.view(), w.view(), {}, false, c.geometry);
}

}  // namespace

TEST_CASE("a convolution's output shape is floor((in + 2 pad - reach) / stride) + 1") {
  CHECK(kernels::conv2d_output_shape({2, 3, 224, 225}, {64, 3, 7, 7}, {{2, 2}, {3, 3}}) ==
        Shape{2, 64, 112, 113});
  CHECK(kernels::conv2d_output_shape({0, 4, 9, 9}, {8, 4, 3, 3}, {{1, 2}, {0, 1}, {2, 1}}) ==
        Shape{0, 8, 5, 5});
  CHECK_THROWS_AS(kernels::conv2d_output_shape({1, 4, 2, 9}, {8, 4, 3, 3}, {}), ShapeError);
}

TEST_CASE("convolution and gradients in f32 agree with their definition") {
  check_all(test::isas_here(), DType::f32);
}

TEST_CASE("convolution and gradients in bf16 agree with their definition") {
  std::vector<Isa> isas{Isa::baseline};  // without the instructions: right all the same
  if (detect_isa() == Isa::avx512_bf16) isas.push_back(Isa::avx512_bf16);
  check_all(isas, DType::bf16);
}

TEST_CASE("Winograd convolutions agree with direct ones, which can be had on request") {
  const Case c{"", {16, 64, 28, 28}, {64, 64, 3, 3}, {{1, 1}, {1, 1}}};
  CpuContext free_choice({.threads = 2});
  CpuContext direct({.threads = 2, .direct_convolutions = true});
  const Conv2dLayouts layouts = kernels::conv2d_layouts(direct, c.x, c.w, c.geometry);
  Buffer x(c.x, DType::f32, layouts.x);
  Buffer dy(c.x, DType::f32, layouts.y);
  Buffer w(c.w);
  PackedWeights packed;
  const Weight weight{w.randomize(1).view(), 1, &packed};
  x.randomize(2);
  dy.randomize(3);
  struct Results {
    explicit Results(const Case& c, Conv2dLayouts layouts)
        : y(c.x, DType::f32, layouts.y), dx(c.x, DType::f32, layouts.x), dw(c.w) {}
    Buffer y, dx, dw;
  } chosen(c, layouts), exact(c, layouts);
  const auto compute = [&](CpuContext& context, Results& results) {
    kernels::conv2d_forward(context, x.view(), weight, {}, results.y.view(), c.geometry);
    kernels::conv2d_backward_data(context, dy.view(), weight, results.dx.view(), c.geometry);
    kernels::conv2d_backward_weights(context, x.view(), dy.view(), results.dw.view(), {}, false,
                                     c.geometry);
  };
  compute(free_choice, chosen);
  compute(direct, exact);
  test::require_close(chosen.y.view(), exact.y.view(), 64 * 9);
  test::require_close(chosen.dx.view(), exact.dx.view(), 64 * 9);
  test::require_close(chosen.dw.view(), exact.dw.view(), 16 * 28 * 28);
  for (const std::string& text : direct.convolutions().implementations()) {
    CHECK(text.find("wino") == std::string::npos);
  }
  std::size_t winograd = 0;
  for (const std::string& text : free_choice.convolutions().implementations()) {
    winograd += text.find("wino") != std::string::npos;
  }
  CHECK((winograd > 0) == (uses_vendor_library() && detect_isa() >= Isa::avx512));
}

TEST_CASE("an image in channels-last order is convolved too") {
  CpuContext context({.threads = 2});
  if (!uses_vendor_library()) COLLAR_SKIP("this build convolves plain images only");
  check(context, cases()[4], DType::f32, {Layout::channels_last, Layout::channels_last});
}

TEST_CASE("a weight whose version has moved is packed anew") {
  CpuContext context({.threads = 2});
  const Case& c = cases()[4];
  const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
  const Shape y_shape = kernels::conv2d_output_shape(c.x, c.w, c.geometry);
  Buffer x(c.x, DType::f32, layouts.x);
  Buffer w(c.w);
  Buffer y(y_shape, DType::f32, layouts.y);
  Buffer exact(y_shape, DType::f32, layouts.y);
  x.randomize(1);
  PackedWeights packed;
  for (std::uint32_t version = 0; version < 3; ++version) {
    w.randomize(version);
    const Weight weight{w.view(), version, &packed};
    kernels::conv2d_forward(context, x.view(), weight, {}, y.view(), c.geometry);
    kernels::reference::conv2d_forward(x.view(), w.view(), {}, exact.view(), c.geometry);
    test::require_close(y.view(), exact.view(), 16 * 9);
  }
}

TEST_CASE("an empty batch gives empty results and no gradient") {
  CpuContext context({.threads = 2});
  const Case c{"", {0, 16, 8, 8}, {16, 16, 3, 3}, {{1, 1}, {1, 1}}};
  run(context, c, DType::f32);
  Buffer x(c.x);
  Buffer dw(c.w);
  Buffer dbias({16});
  dw.randomize(1);
  dbias.randomize(2);
  const float before = dw.data()[5];
  kernels::conv2d_backward_weights(context, x.view(), x.view(), dw.view(), dbias.view(), true,
                                   c.geometry);
  CHECK(dw.data()[5] == before);
  kernels::conv2d_backward_weights(context, x.view(), x.view(), dw.view(), dbias.view(), false,
                                   c.geometry);
  CHECK(dw.data()[5] == 0.0F);
  CHECK(dbias.data()[5] == 0.0F);
}

TEST_CASE("a convolution that has run before takes nothing from the system") {
  CpuContext context({.threads = 2});
  const Case& c = kLarge;
  run(context, c, DType::f32);
  const auto before = context.allocator().statistics();
  run(context, c, DType::f32);
  const auto after = context.allocator().statistics();
  CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.bytes_in_use == 0);
}

TEST_CASE("contexts of several threads of a process compute side by side, bit for bit as alone") {
  const Case& c = kLarge;
  const auto gradients = [&c] {
    CpuContext context({.threads = 2});
    const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
    Buffer x(c.x, DType::f32, layouts.x);
    Buffer dy(kernels::conv2d_output_shape(c.x, c.w, c.geometry), DType::f32, layouts.y);
    Buffer dw(c.w);
    x.randomize(1);
    dy.randomize(2);
    for (int i = 0; i < 5; ++i) {
      kernels::conv2d_backward_weights(context, x.view(), dy.view(), dw.view(), {}, i > 0,
                                       c.geometry);
    }
    return std::vector<float>(dw.data(), dw.data() + c.w.numel());
  };
  const std::vector<float> alone = gradients();
  std::vector<std::vector<float>> together(3);
  {
    std::vector<std::jthread> ranks;
    for (auto& result : together) ranks.emplace_back([&] { result = gradients(); });
  }
  for (const auto& result : together) CHECK(result == alone);
}

TEST_CASE("no convolution of a ResNet-50d takes a slow path") {
  if (!uses_vendor_library()) COLLAR_SKIP("this build has no oneDNN");
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const kernels::ConvolutionWork& work : bench::resnet50d_convolutions(2, 224)) {
      const Case c{"", work.x, work.w, work.geometry};
      run(context, c, DType::f32);
      if (context.has_fast_bf16()) run(context, c, DType::bf16);
    }
    const auto implementations = context.convolutions().implementations();
    CHECK(implementations.size() >= 3 * 20);
    for (const std::string& text : implementations) {
      INFO(name_of(isa) << ": " << text);
      CHECK(text.find("ref") == std::string::npos);
    }
  }
}

TEST_CASE("between stem and pool a ResNet-50d is blocked, and its stem reads plain pictures") {
  if (!uses_vendor_library()) COLLAR_SKIP("this build has no oneDNN");
  if (detect_isa() < Isa::avx2) COLLAR_SKIP("this CPU has no AVX2: everything is plain");
  CpuContext context({.isa = Isa::avx2});
  for (const kernels::ConvolutionWork& c : bench::resnet50d_convolutions(2, 224)) {
    const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
    CHECK(layouts.x == (c.x[1] == 3 ? Layout::plain : Layout::blocked8));
    CHECK(layouts.y == Layout::blocked8);
  }
}
