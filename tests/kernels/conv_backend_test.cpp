// SPDX-License-Identifier: Apache-2.0
// What a backend's convolutions promise besides being right: fast paths, packed weights, no memory
// from the system, several contexts side by side.
#include <catch2/catch.hpp>

#include <string>
#include <thread>
#include <vector>

#include "bench/resnet50d.hpp"
#include "kernels/conv.hpp"
#include "kernels/cpu/primitives.hpp"
#include "kernels/reference/conv.hpp"
#include "tests/kernels/buffers.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using kernels::Conv2dLayouts;
using kernels::ConvolutionWork;
using test::Buffer;

namespace {

ConvolutionWork same_size(const Shape& x, std::int64_t outputs) {
  return {x, {outputs, x[1], 3, 3}, {{1, 1}, {1, 1}}};
}

// Large enough for several threads to have work.
const ConvolutionWork kLarge = same_size({4, 64, 14, 14}, 64);

bool uses_vendor_library() {
  return kernels::CpuPrimitives::description().find("oneDNN") != std::string::npos;
}

void run(CpuContext& context, const ConvolutionWork& c, DType dtype) {
  const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
  Buffer x(c.x, dtype, layouts.x);
  Buffer w(c.w);
  Buffer y(kernels::conv2d_output_shape(c.x, c.w, c.geometry), dtype, layouts.y);
  PackedWeights packed;
  const Weight weight{w.view(), 1, &packed};
  kernels::conv2d_forward(context, x.view(), weight, {}, y.view(), c.geometry);
  if (c.needs_dx) kernels::conv2d_backward_data(context, y.view(), weight, x.view(), c.geometry);
  kernels::conv2d_backward_weights(context, x.view(), y.view(), w.view(), {}, false, c.geometry);
}

}  // namespace

TEST_CASE("Winograd convolutions agree with direct ones, which can be had on request") {
  const ConvolutionWork c = same_size({16, 64, 28, 28}, 64);
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
    Results(const ConvolutionWork& c, Conv2dLayouts layouts)
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
  for (const std::string& text : direct.primitives().implementations()) {
    CHECK(text.find("wino") == std::string::npos);
  }
  std::size_t winograd = 0;
  for (const std::string& text : free_choice.primitives().implementations()) {
    winograd += text.find("wino") != std::string::npos;
  }
  CHECK((winograd > 0) == (uses_vendor_library() && detect_isa() >= Isa::avx512));
}

TEST_CASE("a weight whose version has moved is packed anew") {
  CpuContext context({.threads = 2});
  const ConvolutionWork c = same_size({2, 16, 10, 7}, 32);
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
  const ConvolutionWork c = same_size({0, 16, 8, 8}, 16);
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
  const ConvolutionWork& c = kLarge;
  run(context, c, DType::f32);
  const auto before = context.allocator().statistics();
  run(context, c, DType::f32);
  const auto after = context.allocator().statistics();
  CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.bytes_in_use == 0);
}

TEST_CASE("contexts of several threads of a process compute side by side, bit for bit as alone") {
  const ConvolutionWork& c = kLarge;
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
    if (isa == Isa::avx512 && detect_isa() > isa) continue;  // the same kernels as with bf16
    CpuContext context({.threads = 1, .isa = isa});
    for (const ConvolutionWork& c : bench::resnet50d_convolutions(2, 224)) {
      run(context, c, DType::f32);
      if (context.has_fast_bf16()) run(context, c, DType::bf16);
    }
    const auto implementations = context.primitives().implementations();
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
  for (const ConvolutionWork& c : bench::resnet50d_convolutions(2, 224)) {
    const Conv2dLayouts layouts = kernels::conv2d_layouts(context, c.x, c.w, c.geometry);
    CHECK(layouts.x == (c.x[1] == 3 ? Layout::plain : Layout::blocked8));
    CHECK(layouts.y == Layout::blocked8);
  }
}
