// SPDX-License-Identifier: Apache-2.0
// The fully connected layer of this build against its definition.
#include "kernels/matmul.hpp"

#include <catch2/catch.hpp>

#include "kernels/cpu/convolutions.hpp"
#include "kernels/reference/matmul.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using test::Buffer;

namespace {

void check(CpuContext& context, DType dtype, std::int64_t batch, std::int64_t inputs,
           std::int64_t outputs) {
  INFO(name_of(dtype) << " [" << batch << ", " << inputs << "] * [" << outputs << ", " << inputs
                      << "]");
  Buffer x({batch, inputs}, dtype);
  Buffer w({outputs, inputs});
  Buffer bias({outputs});
  Buffer dy({batch, outputs}, dtype);
  PackedWeights packed;
  x.randomize(1);
  bias.randomize(3);
  dy.randomize(4);
  for (std::uint64_t version = 1; version <= 2; ++version) {
    const Weight weight{w.randomize(static_cast<std::uint32_t>(version)).view(), version, &packed};
    Buffer y({batch, outputs}, dtype);
    Buffer y_exact({batch, outputs}, dtype);
    for (const View& some_bias : {View{}, bias.view()}) {
      kernels::linear_forward(context, x.view(), weight, some_bias, y.view());
      kernels::reference::linear_forward(x.view(), w.view(), some_bias, y_exact.view());
      test::require_close(y.view(), y_exact.view(), static_cast<double>(inputs));
    }
    Buffer dx({batch, inputs}, dtype);
    Buffer dx_exact({batch, inputs}, dtype);
    kernels::linear_backward_data(context, dy.view(), weight, dx.view());
    kernels::reference::linear_backward_data(dy.view(), w.view(), dx_exact.view());
    test::require_close(dx.view(), dx_exact.view(), static_cast<double>(outputs));
  }
  for (const bool accumulate : {false, true}) {
    Buffer dw({outputs, inputs});
    Buffer dbias({outputs});
    Buffer dw_exact({outputs, inputs});
    Buffer dbias_exact({outputs});
    for (Buffer* buffer : {&dw, &dw_exact, &dbias, &dbias_exact}) buffer->randomize(7);
    kernels::linear_backward_weights(context, x.view(), dy.view(), dw.view(), dbias.view(),
                                     accumulate);
    kernels::reference::linear_backward_weights(x.view(), dy.view(), dw_exact.view(),
                                                dbias_exact.view(), accumulate);
    test::require_close(dw.view(), dw_exact.view(), static_cast<double>(batch));
    test::require_close(dbias.view(), dbias_exact.view(), static_cast<double>(batch));
  }
}

}  // namespace

TEST_CASE("the linear layer and its gradients agree with their definition") {
  for (const Isa isa : test::isas_here()) {
    for (const int threads : {1, 3}) {
      CpuContext context({.threads = threads, .isa = isa});
      INFO(name_of(isa) << ", " << threads << " threads");
      for (const DType dtype : {DType::f32, DType::bf16}) {
        if (dtype == DType::bf16 && isa != Isa::baseline && !context.has_fast_bf16()) continue;
        check(context, dtype, 1, 1, 1);
        check(context, dtype, 5, 7, 3);
        check(context, dtype, 16, 512, 37);
        check(context, dtype, 2, 512, 100);
        check(context, dtype, 17, 33, 65);
        check(context, dtype, 0, 16, 8);
      }
      for (const std::string& text : context.convolutions().implementations()) {
        INFO(text);
        CHECK(text.find("ref") == std::string::npos);
      }
    }
  }
}

TEST_CASE("the classifier of a ResNet-50 for 37 classes agrees with its definition") {
  CpuContext context({.threads = 2});
  check(context, DType::f32, 64, 2048, 37);
}

TEST_CASE("the linear layer's gradients of weight and bias can be had one without the other") {
  CpuContext context({.threads = 2});
  Buffer x({4, 6});
  Buffer dy({4, 3});
  Buffer dw({3, 6});
  Buffer exact({3, 6});
  x.randomize(1);
  dy.randomize(2);
  kernels::linear_backward_weights(context, x.view(), dy.view(), dw.view(), {}, false);
  kernels::reference::linear_backward_weights(x.view(), dy.view(), exact.view(), {}, false);
  test::require_close(dw.view(), exact.view(), 4);

  Buffer dbias({3});
  Buffer exact_dbias({3});
  for (const bool accumulate : {false, true}) {
    kernels::linear_backward_weights(context, {}, dy.view(), {}, dbias.view(), accumulate);
    kernels::reference::linear_backward_weights({}, dy.view(), {}, exact_dbias.view(), accumulate);
    test::require_close(dbias.view(), exact_dbias.view(), 4);
  }
}
