// SPDX-License-Identifier: Apache-2.0
// Batch normalisation against its formulas, in every layout, type and instruction set.
#include "kernels/norm.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/error.hpp"
#include "kernels/functors.hpp"
#include "kernels/pointwise.hpp"
#include "kernels/reference/norm.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using kernels::BatchNormBackward;
using kernels::BatchNormInference;
using kernels::BatchNormTraining;
using kernels::StatisticsExchange;
using test::Buffer;
using test::same_bits;

namespace {

struct Case {
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  bool residual = false;
  bool relu = false;
};

std::string describe(const Case& c) {
  return fmt::format("{} {} {}{}{}", to_string(c.shape), name_of(c.dtype), name_of(c.layout),
                     c.residual ? " residual" : "", c.relu ? " relu" : "");
}

/// Shapes with tails everywhere: pixels that fill no vector and no chunk of sums, channels that
/// fill no register, planes of one pixel, matrices.
std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<std::pair<Shape, std::vector<Layout>>> shapes{
      {{3, 16, 9, 15}, {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16}},
      {{2, 32, 1, 1}, {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16}},
      {{2, 48, 7, 7}, {Layout::blocked8, Layout::blocked16}},
      {{2, 29, 5, 3}, {Layout::plain, Layout::channels_last}},
      {{4, 1, 3, 11}, {Layout::plain, Layout::channels_last}},
      {{7, 37}, {Layout::plain}},
      {{130, 24}, {Layout::plain}}};
  for (const auto& [shape, layouts] : shapes) {
    for (const Layout layout : layouts) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const bool residual : {false, true}) {
          for (const bool relu : {false, true}) {
            all.push_back({shape, dtype, layout, residual, relu});
          }
        }
      }
    }
  }
  return all;
}

/// Everything one layer reads and writes, forward and backward.
struct Layer {
  explicit Layer(const Case& c)
      : x(c.shape, c.dtype, c.layout),
        residual(c.shape, c.dtype, c.layout),
        dy0(c.shape, c.dtype, c.layout),
        dy1(c.shape, c.dtype, c.layout),
        y(c.shape, c.dtype, c.layout),
        dx(c.shape, c.dtype, c.layout),
        dresidual(c.shape, c.dtype, c.layout),
        weight({c.shape[1]}),
        bias({c.shape[1]}),
        mean({c.shape[1]}),
        inv_std({c.shape[1]}),
        running_mean({c.shape[1]}),
        running_var({c.shape[1]}),
        dweight({c.shape[1]}),
        dbias({c.shape[1]}),
        mask({(c.shape.numel() + 7) / 8}, DType::u8) {
    x.randomize(1);
    residual.randomize(2);
    dy0.randomize(3);
    dy1.randomize(4);
    weight.randomize(5);
    bias.randomize(6);
    running_mean.randomize(7);
    running_var.randomize(8);
    dweight.randomize(9);
    dbias.randomize(10);
    for (std::int64_t i = 0; i < c.shape[1]; ++i) running_var.data()[i] += 1.5f;
  }

  BatchNormTraining training(const Case& c) {
    BatchNormTraining args;
    args.x = x.view();
    if (c.residual) args.residual = residual.view();
    args.weight = weight.view();
    args.bias = bias.view();
    args.y = y.view();
    if (c.relu) args.mask = mask.view();
    args.mean = mean.view();
    args.inv_std = inv_std.view();
    args.running_mean = running_mean.view();
    args.running_var = running_var.view();
    args.momentum = 0.3;
    args.relu = c.relu;
    return args;
  }

  BatchNormInference inference(const Case& c) {
    BatchNormInference args;
    args.x = x.view();
    if (c.residual) args.residual = residual.view();
    args.weight = weight.view();
    args.bias = bias.view();
    args.mean = running_mean.view();
    args.var = running_var.view();
    args.y = y.view();
    if (c.relu) args.mask = mask.view();
    args.inv_std = inv_std.view();
    args.relu = c.relu;
    return args;
  }

  BatchNormBackward backward(const Case& c) {
    BatchNormBackward args;
    args.dy[0] = dy0.view();
    if (c.residual) args.dy[1] = dy1.view();
    args.x = x.view();
    args.weight = weight.view();
    args.mean = mean.view();
    args.inv_std = inv_std.view();
    if (c.relu) args.mask = mask.view();
    args.dx = dx.view();
    if (c.residual) args.dresidual = dresidual.view();
    args.dweight = dweight.view();
    args.dbias = dbias.view();
    return args;
  }

  Buffer x, residual, dy0, dy1, y, dx, dresidual;
  Buffer weight, bias, mean, inv_std, running_mean, running_var, dweight, dbias, mask;
};

/// The mask is that of the very y that was stored.
void require_mask_of(ConstView y, ConstView mask) {
  const std::vector<double> values = test::values_of(y);
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(mask.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] <= 0)) wanted[i / 8] |= static_cast<std::uint8_t>(1u << i % 8);
  }
  REQUIRE(std::memcmp(wanted.data(), mask.data, wanted.size()) == 0);
}

}  // namespace

TEST_CASE("batch normalisation in training agrees with its formulas") {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const Case& c : cases()) {
      INFO(name_of(isa) << " " << describe(c));
      Layer own(c);
      Layer exact(c);
      kernels::batch_norm_training(context, own.training(c), {});
      kernels::reference::batch_norm_training(exact.training(c));
      const auto values = static_cast<double>(c.shape.numel() / c.shape[1]);
      test::require_close(own.y.view(), exact.y.view(), values);
      test::require_close(own.mean.view(), exact.mean.view(), values);
      test::require_close(own.inv_std.view(), exact.inv_std.view(), values);
      test::require_close(own.running_mean.view(), exact.running_mean.view(), values);
      test::require_close(own.running_var.view(), exact.running_var.view(), values);

      if (c.relu) require_mask_of(own.y.view(), own.mask.view());
    }
  }
}

TEST_CASE("batch normalisation with given statistics agrees with its formulas") {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const Case& c : cases()) {
      INFO(name_of(isa) << " " << describe(c));
      Layer own(c);
      Layer exact(c);
      kernels::batch_norm_inference(context, own.inference(c));
      kernels::reference::batch_norm_inference(exact.inference(c));
      test::require_close(own.y.view(), exact.y.view(), 1);
      test::require_close(own.inv_std.view(), exact.inv_std.view(), 1);
      if (c.relu) require_mask_of(own.y.view(), own.mask.view());
    }
  }
}

TEST_CASE("gradients of batch normalisation agree with their formulas") {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.threads = 2, .isa = isa});
    for (const Case& c : cases()) {
      for (const bool batch_statistics : {true, false}) {
        INFO(name_of(isa) << " " << describe(c)
                          << (batch_statistics ? "" : " constant statistics"));
        Layer own(c);
        Layer exact(c);
        for (Layer* layer : {&own, &exact}) {
          kernels::reference::batch_norm_training(layer->training(c));
        }
        BatchNormBackward args = own.backward(c);
        BatchNormBackward wanted = exact.backward(c);
        args.batch_statistics = wanted.batch_statistics = batch_statistics;
        args.accumulate_affine = wanted.accumulate_affine = c.residual;
        kernels::batch_norm_backward(context, args, {});
        kernels::reference::batch_norm_backward(wanted);
        const auto values = static_cast<double>(c.shape.numel() / c.shape[1]);
        test::require_close(own.dx.view(), exact.dx.view(), values);
        test::require_close(own.dweight.view(), exact.dweight.view(), values);
        test::require_close(own.dbias.view(), exact.dbias.view(), values);
        if (c.residual) CHECK(same_bits(own.dresidual, exact.dresidual));
      }
    }
  }
}

TEST_CASE("only the gradients that are wanted are written, from what they need") {
  CpuContext context({.threads = 2});
  for (const Layout layout : {Layout::plain, Layout::blocked16}) {
    const Case c{{3, 16, 5, 5}, DType::f32, layout, true, true};
    Layer own(c);
    Layer exact(c);
    for (Layer* layer : {&own, &exact}) {
      kernels::reference::batch_norm_training(layer->training(c));
    }
    kernels::reference::batch_norm_backward(exact.backward(c));

    SECTION("parameters only " + std::string(name_of(layout))) {
      BatchNormBackward args = own.backward(c);
      args.dx = args.dresidual = {};
      kernels::batch_norm_backward(context, args, {});
      test::require_close(own.dweight.view(), exact.dweight.view(), 75);
    }
    SECTION("a frozen layer between trained ones needs no x " + std::string(name_of(layout))) {
      BatchNormBackward args = own.backward(c);
      args.x = {};
      args.dweight = {};
      args.batch_statistics = false;
      kernels::batch_norm_backward(context, args, {});
      BatchNormBackward wanted = exact.backward(c);
      wanted.batch_statistics = false;
      kernels::reference::batch_norm_backward(wanted);
      test::require_close(own.dx.view(), exact.dx.view(), 1);
      test::require_close(own.dbias.view(), exact.dbias.view(), 75);
    }
    SECTION("in the memory of the upstream gradients " + std::string(name_of(layout))) {
      BatchNormBackward args = own.backward(c);
      args.dx = own.dy0.view();
      args.dresidual = own.dy1.view();
      kernels::batch_norm_backward(context, args, {});
      test::require_close(own.dy0.view(), exact.dx.view(), 75);
      CHECK(same_bits(own.dy1, exact.dresidual));
    }
  }
}

TEST_CASE("batch normalisation gives the same bits on any number of threads") {
  // More threads than strips, so that both ways of sharing the work are taken.
  for (const Case& c : {Case{{4, 32, 29, 31}, DType::f32, Layout::blocked16, true, true},
                        Case{{4, 32, 29, 31}, DType::bf16, Layout::blocked8, true, true},
                        Case{{4, 3, 57, 63}, DType::f32, Layout::plain, true, true},
                        Case{{4, 43, 29, 31}, DType::f32, Layout::channels_last, false, true}}) {
    INFO(describe(c));
    Layer alone(c);
    CpuContext one({.threads = 1});
    kernels::batch_norm_training(one, alone.training(c), {});
    kernels::batch_norm_backward(one, alone.backward(c), {});
    for (const int threads : {2, 3, 7}) {
      Layer together(c);
      CpuContext context({.threads = threads});
      kernels::batch_norm_training(context, together.training(c), {});
      kernels::batch_norm_backward(context, together.backward(c), {});
      CHECK(same_bits(alone.y, together.y));
      CHECK(same_bits(alone.mask, together.mask));
      CHECK(same_bits(alone.running_var, together.running_var));
      CHECK(same_bits(alone.dx, together.dx));
      CHECK(same_bits(alone.dweight, together.dweight));
    }
  }
}

TEST_CASE("every instruction set normalises a blocked tensor to the same bits") {
  for (const Layout layout : {Layout::blocked8, Layout::blocked16}) {
    const Case c{{3, 32, 13, 11}, DType::f32, layout, true, true};
    CpuContext baseline({.threads = 1, .isa = Isa::baseline});
    Layer wanted(c);
    kernels::batch_norm_training(baseline, wanted.training(c), {});
    kernels::batch_norm_backward(baseline, wanted.backward(c), {});
    for (const Isa isa : test::isas_here()) {
      CpuContext context({.threads = 1, .isa = isa});
      Layer own(c);
      kernels::batch_norm_training(context, own.training(c), {});
      kernels::batch_norm_backward(context, own.backward(c), {});
      CHECK(same_bits(own.y, wanted.y));
      CHECK(same_bits(own.dx, wanted.dx));
      CHECK(same_bits(own.mask, wanted.mask));
    }
  }
}

TEST_CASE("tensors larger than the caches, which are stored past them, get the same bits") {
  CpuContext context({.threads = 2});
  const Case whole{{3, 16, 440, 440}, DType::f32, Layout::blocked16};  // 37 MB
  Buffer x(whole.shape, whole.dtype, whole.layout);
  Buffer y(whole.shape, whole.dtype, whole.layout);
  Buffer statistics({16});
  x.randomize(1);
  for (int c = 0; c < 16; ++c) statistics.data()[c] = 0.5f;
  BatchNormInference forward;
  forward.x = x.view();
  forward.mean = forward.var = statistics.view();
  forward.y = y.view();
  forward.relu = true;
  BatchNormBackward backward;
  backward.dy[0] = backward.x = x.view();
  backward.mean = backward.inv_std = statistics.view();
  backward.dx = y.view();
  backward.batch_statistics = false;

  const std::int64_t image = whole.shape.numel() / 3;
  Buffer small_y({1, 16, 440, 440}, whole.dtype, whole.layout);
  const auto require_equal_images = [&](const auto& run_small) {
    for (std::int64_t n = 0; n < 3; ++n) {
      const View small_x{x.data() + n * image, whole.dtype, small_y.view().shape, whole.layout};
      run_small(small_x);
      REQUIRE(std::memcmp(y.data() + n * image, small_y.data(), small_y.view().bytes()) == 0);
    }
  };
  kernels::batch_norm_inference(context, forward);
  require_equal_images([&](View small_x) {
    forward.x = small_x;
    forward.y = small_y.view();
    kernels::batch_norm_inference(context, forward);
  });
  kernels::batch_norm_backward(context, backward, {});
  require_equal_images([&](View small_x) {
    backward.dy[0] = backward.x = small_x;
    backward.dx = small_y.view();
    kernels::batch_norm_backward(context, backward, {});
  });
}

TEST_CASE("a large mean costs no accuracy, and an outlier in front no more than itself") {
  CpuContext context;
  for (const Layout layout : {Layout::plain, Layout::blocked16}) {
    for (const bool outlier : {false, true}) {
      const Case c{{4, 16, 21, 17}, DType::f32, layout};
      Layer own(c);
      for (std::int64_t i = 0; i < c.shape.numel(); ++i) {
        own.x.data()[i] = 1000 + 0.5f * own.x.data()[i];
        if (outlier && i < 16) own.x.data()[i] = 0;
      }
      Layer exact(c);
      std::memcpy(exact.x.data(), own.x.data(), own.x.view().bytes());
      kernels::batch_norm_training(context, own.training(c), {});
      kernels::reference::batch_norm_training(exact.training(c));
      for (std::int64_t i = 0; i < 16; ++i) {
        CHECK(own.inv_std.data()[i] == Approx(exact.inv_std.data()[i]).epsilon(1e-5));
        CHECK(own.mean.data()[i] == Approx(exact.mean.data()[i]).epsilon(1e-7));
      }
    }
  }
}

TEST_CASE("a constant channel becomes exactly its bias") {
  CpuContext context;
  for (const Layout layout : {Layout::plain, Layout::channels_last, Layout::blocked8}) {
    const Case c{{3, 8, 9, 23}, DType::f32, layout};
    Layer own(c);
    for (std::int64_t i = 0; i < c.shape.numel(); ++i) own.x.data()[i] = 0.37f;
    for (std::int64_t i = 0; i < 8; ++i) own.bias.data()[i] = 0.25f;
    kernels::batch_norm_training(context, own.training(c), {});
    CHECK(own.inv_std.data()[0] == Approx(1 / std::sqrt(1e-5)));
    for (std::int64_t i = 0; i < c.shape.numel(); ++i) REQUIRE(own.y.data()[i] == 0.25f);
  }
}

TEST_CASE("NaN passes the ReLU and its mask, zero does not, and -0 keeps its sign") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer x({1, 16, 1, 1}, DType::f32, Layout::blocked16);
    Buffer y({1, 16, 1, 1}, DType::f32, Layout::blocked16);
    Buffer mask({2}, DType::u8);
    Buffer zeros({16});
    Buffer ones({16});
    for (int i = 0; i < 16; ++i) ones.data()[i] = 1;
    const std::vector<float> values{nan, 1, -1, 0, -0.0f};
    for (std::size_t i = 0; i < values.size(); ++i) x.data()[i] = values[i];
    BatchNormInference args;
    args.x = x.view();
    args.mean = zeros.view();
    args.var = ones.view();
    args.bias = x.view();  // keeps the sign of a zero: -0 + -0
    args.bias.shape = {16};
    args.y = y.view();
    args.mask = mask.view();
    args.epsilon = 0;
    args.relu = true;
    kernels::batch_norm_inference(context, args);
    CHECK(std::isnan(y.data()[0]));
    CHECK(y.data()[1] == 2);
    CHECK(y.data()[2] == 0);
    CHECK(std::signbit(y.data()[4]));
    CHECK(mask.data<std::uint8_t>()[0] == 0b00011);
    CHECK(mask.data<std::uint8_t>()[1] == 0);
  }
}

TEST_CASE("two ranks that exchange statistics normalise like one that has both halves") {
  const Case whole{{4, 16, 5, 7}, DType::f32, Layout::blocked16, true, true};
  const Case half{{2, 16, 5, 7}, DType::f32, Layout::blocked16, true, true};
  CpuContext context({.threads = 2});
  Layer exact(whole);
  kernels::reference::batch_norm_training(exact.training(whole));
  kernels::reference::batch_norm_backward(exact.backward(whole));

  // The second half's sums are what the exchange adds to the first half's.
  const std::int64_t offset = half.shape.numel();
  Layer second(half);
  second.x.copy_from(exact.x, offset);
  second.dy0.copy_from(exact.dy0, offset);
  second.dy1.copy_from(exact.dy1, offset);
  kernels::reference::batch_norm_training(second.training(half));
  StatisticsExchange exchange;
  exchange.merge_moments = [&](View mean, View m2, double count) {
    const double values = 2 * 5 * 7;
    CHECK(count == values);
    for (std::int64_t c = 0; c < 16; ++c) {
      const double other_mean = double{second.mean.data()[c]};
      const double inv_std = double{second.inv_std.data()[c]};
      double merged_mean = double{mean.as<float>()[c]};
      double merged_m2 = double{m2.as<float>()[c]};
      kernels::MomentsMerge(count, values)(merged_mean, merged_m2, other_mean,
                                           (1 / (inv_std * inv_std) - 1e-5) * values);
      mean.as<float>()[c] = static_cast<float>(merged_mean);
      m2.as<float>()[c] = static_cast<float>(merged_m2);
    }
    return 2 * values;
  };
  Layer first(half);
  first.x.copy_from(exact.x, 0);
  first.residual.copy_from(exact.residual, 0);
  first.dy0.copy_from(exact.dy0, 0);
  first.dy1.copy_from(exact.dy1, 0);
  kernels::batch_norm_training(context, first.training(half), exchange);
  test::require_close(first.mean.view(), exact.mean.view(), 140);
  test::require_close(first.inv_std.view(), exact.inv_std.view(), 140);
  test::require_close(first.running_var.view(), exact.running_var.view(), 140);
  Buffer first_y(half.shape, DType::f32, Layout::blocked16);
  first_y.copy_from(exact.y, 0);
  test::require_close(first.y.view(), first_y.view(), 140);

  exchange.add_sums = [&](View sums, double count) {
    // Sums over both halves, from the whole batch's gradients.
    for (std::int64_t c = 0; c < 16; ++c) {
      sums.as<float>()[c] = exact.dbias.data()[c];
      sums.as<float>()[16 + c] = exact.dweight.data()[c] / exact.inv_std.data()[c];
    }
    return 2 * count;
  };
  kernels::batch_norm_backward(context, first.backward(half), exchange);
  Buffer first_dx(half.shape, DType::f32, Layout::blocked16);
  first_dx.copy_from(exact.dx, 0);
  test::require_close(first.dx.view(), first_dx.view(), 140);
}

TEST_CASE("an empty batch changes nothing forward and has gradients of zero") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CpuContext context;
  for (const Case& c : {Case{{0, 16, 3, 3}, DType::f32, Layout::blocked16, true, true},
                        Case{{0, 5, 3, 3}, DType::bf16, Layout::channels_last, true, true},
                        Case{{0, 37}}, Case{{2, 0, 3, 3}, DType::f32, Layout::channels_last}}) {
    INFO(describe(c));
    Layer layer(c);
    Layer before(c);
    kernels::batch_norm_training(context, layer.training(c), {});
    CHECK(same_bits(layer.running_mean, before.running_mean));
    kernels::fill(context, layer.inv_std.view(), nan);
    kernels::batch_norm_inference(context, layer.inference(c));
    BatchNormBackward args = layer.backward(c);
    args.batch_statistics = false;
    args.accumulate_affine = true;
    kernels::batch_norm_backward(context, args, {});
    CHECK(same_bits(layer.dweight, before.dweight));
    CHECK(same_bits(layer.dbias, before.dbias));
    args.accumulate_affine = false;
    kernels::batch_norm_backward(context, args, {});
    const std::vector<double> zeros(static_cast<std::size_t>(c.shape[1]), 0.0);
    CHECK(test::values_of(layer.dweight.view()) == zeros);
    CHECK(test::values_of(layer.dbias.view()) == zeros);
  }
}

TEST_CASE("a rank with an empty batch takes part in every exchange") {
  CpuContext context;
  const Case c{{0, 16, 3, 3}, DType::f32, Layout::blocked16, true, true};
  Layer layer(c);
  int exchanges = 0;
  StatisticsExchange exchange;
  exchange.merge_moments = [&](View mean, View m2, double count) {
    CHECK(count == 0);
    ++exchanges;
    for (std::int64_t i = 0; i < 16; ++i) {  // the other ranks' nine values
      mean.as<float>()[i] = 2;
      m2.as<float>()[i] = 9 * 4;
    }
    return 9.0;
  };
  exchange.add_sums = [&](View sums, double count) {
    CHECK(count == 0);
    CHECK(sums.as<float>()[17] == 0);
    ++exchanges;
    return 9.0;
  };
  kernels::batch_norm_training(context, layer.training(c), exchange);
  CHECK(layer.mean.data()[3] == 2);
  CHECK(layer.inv_std.data()[3] == Approx(0.5));
  kernels::batch_norm_backward(context, layer.backward(c), exchange);
  CHECK(layer.dweight.data()[3] == 0);
  CHECK(exchanges == 2);

  exchange.merge_moments = [](View, View, double) { return 1.0; };
  CHECK_THROWS_AS(kernels::batch_norm_training(context, layer.training(c), exchange), ShapeError);
}
