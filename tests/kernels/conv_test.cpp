// SPDX-License-Identifier: Apache-2.0
// The convolution of this build against its definition, over shapes of every kind.
#include "kernels/conv.hpp"

#include <catch2/catch.hpp>

#include <list>
#include <vector>

#include "kernels/core/error.hpp"
#include "kernels/reference/conv.hpp"
#include "tests/kernels/buffers.hpp"

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

// Random operands of a case in one layout, and what the definition makes of them.
class Trial {
 public:
  Trial(const Case& c, DType dtype, Conv2dLayouts layouts)
      : layouts_(layouts),
        geometry_(c.geometry),
        x_(c.x, dtype, layouts.x),
        w_(c.w),
        bias_({c.w[0]}),
        dy_(conv2d_output_shape(c.x, c.w, c.geometry), dtype, layouts.y),
        y_(dy_.view().shape, dtype, layouts.y),
        y_with_bias_(dy_.view().shape, dtype, layouts.y),
        dx_(c.x, dtype, layouts.x),
        dw_(c.w),
        dbias_({c.w[0]}) {
    using namespace kernels::reference;
    x_.randomize(1);
    w_.randomize(2);
    bias_.randomize(3);
    dy_.randomize(4);
    conv2d_forward(x_.view(), w_.view(), {}, y_.view(), geometry_);
    conv2d_forward(x_.view(), w_.view(), bias_.view(), y_with_bias_.view(), geometry_);
    conv2d_backward_data(dy_.view(), w_.view(), dx_.view(), geometry_);
    conv2d_backward_weights(x_.view(), dy_.view(), dw_.view(), dbias_.view(), false, geometry_);
  }

  Conv2dLayouts layouts() const { return layouts_; }

  void check(CpuContext& context) {
    INFO(name_of(context.isa()) << ", " << context.threads() << " threads, " << name_of(layouts_.x)
                                << " -> " << name_of(layouts_.y));
    PackedWeights packed;
    const Weight w{w_.view(), 1, &packed};
    check_forward(context, w);
    check_backward_data(context, w);
    check_backward_weights(context);
  }

 private:
  void check_forward(CpuContext& context, const Weight& w) {
    INFO("forward");
    Buffer y(y_.view().shape, y_.view().dtype, layouts_.y);
    kernels::conv2d_forward(context, x_.view(), w, {}, y.view(), geometry_);
    test::require_close(y.view(), y_.view(), taps());
    kernels::conv2d_forward(context, x_.view(), w, bias_.view(), y.view(), geometry_);
    test::require_close(y.view(), y_with_bias_.view(), taps());
  }

  void check_backward_data(CpuContext& context, const Weight& w) {
    INFO("backward data");
    Buffer dx(dx_.view().shape, dx_.view().dtype, layouts_.x);
    kernels::conv2d_backward_data(context, dy_.view(), w, dx.view(), geometry_);
    const double fan_out = static_cast<double>(w.master.shape[0] / geometry_.groups);
    test::require_close(dx.view(), dx_.view(),
                        taps() * fan_out / static_cast<double>(w.master.shape[1]));
  }

  // Written over what was there, together or one without the other, then added to.
  void check_backward_weights(CpuContext& context) {
    INFO("backward weights");
    const Shape& y = dy_.view().shape;
    const auto positions = static_cast<double>(y[0] * y[2] * y[3]);
    Buffer dw(dw_.view().shape);
    Buffer dbias(dbias_.view().shape);
    dw.randomize(5);
    dbias.randomize(6);
    kernels::conv2d_backward_weights(context, x_.view(), dy_.view(), dw.view(), {}, false,
                                     geometry_);
    test::require_close(dw.view(), dw_.view(), positions);
    kernels::conv2d_backward_weights(context, x_.view(), dy_.view(), dw.view(), dbias.view(), false,
                                     geometry_);
    test::require_close(dw.view(), dw_.view(), positions);
    test::require_close(dbias.view(), dbias_.view(), positions);
    dbias.randomize(7);
    kernels::conv2d_backward_weights(context, {}, dy_.view(), {}, dbias.view(), false, geometry_);
    test::require_close(dbias.view(), dbias_.view(), positions);
    kernels::conv2d_backward_weights(context, x_.view(), dy_.view(), dw.view(), dbias.view(), true,
                                     geometry_);
    for (Buffer* doubled : {&dw, &dbias}) {
      for (std::int64_t i = 0; i < doubled->view().numel(); ++i) doubled->data()[i] /= 2.0F;
    }
    test::require_close(dw.view(), dw_.view(), positions);
    test::require_close(dbias.view(), dbias_.view(), positions);
  }

  double taps() { return static_cast<double>(w_.view().numel() / w_.view().shape[0]); }

  Conv2dLayouts layouts_;
  Conv2dGeometry geometry_;
  Buffer x_, w_, bias_, dy_, y_, y_with_bias_, dx_, dw_, dbias_;
};

// Every case in plain layout and in the one each context prefers.
void check_all(const std::vector<Isa>& isas, DType dtype) {
  std::list<CpuContext> contexts;
  for (const Isa isa : isas) {
    for (const int threads : {1, 3}) contexts.emplace_back(CpuOptions{threads, isa});
  }
  for (const Case& c : cases()) {
    INFO(c.name);
    std::list<Trial> trials;
    trials.emplace_back(c, dtype, Conv2dLayouts{Layout::plain, Layout::plain});
    for (CpuContext& context : contexts) {
      trials.front().check(context);
      const Conv2dLayouts preferred = conv2d_layouts(context, c.x, c.w, c.geometry);
      if (preferred.y == Layout::plain) continue;
      if (preferred.y != trials.back().layouts().y) trials.emplace_back(c, dtype, preferred);
      trials.back().check(context);
    }
  }
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
