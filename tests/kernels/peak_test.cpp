// SPDX-License-Identifier: Apache-2.0
// The yardsticks: the machine's peak, and the convolutions of a network alone.
#include "kernels/cpu/peak.hpp"

#include <catch2/catch.hpp>

#include "bench/resnet50d.hpp"
#include "kernels/cpu/convolution_benchmark.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;

TEST_CASE("the peak is measured for every instruction set and type") {
  for (const Isa isa : test::isas_here()) {
    const CpuContext context({.threads = 1, .isa = isa});
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const double gflops = kernels::measure_peak_gflops(context, dtype);
      INFO(name_of(isa) << " " << name_of(dtype) << ": " << gflops << " GFLOP/s");
      CHECK(gflops > 0.5);
      CHECK(gflops < 10000.0);
    }
  }
  CHECK(kernels::measure_triad_gbs(CpuContext({.threads = 2})) > 0.1);
}

TEST_CASE("a ResNet-50d has 55 convolutions of 4.3 billion multiply-adds an image") {
  double flops = 0.0;
  int count = 0;
  for (const kernels::ConvolutionWork& work : bench::resnet50d_convolutions(2, 224)) {
    flops += work.count * kernels::conv2d_flops(work);
    count += work.count;
  }
  CHECK(count == 55);
  CHECK(flops / 2 / 2 == Approx(4.32e9).epsilon(0.01));
}

TEST_CASE("the convolutions of a small network are measured pass by pass") {
  CpuContext context({.threads = 2});
  const std::vector<kernels::ConvolutionWork> network{
      {{2, 3, 16, 16}, {16, 3, 3, 3}, {{1, 1}, {1, 1}}, 1, false},
      {{2, 16, 16, 16}, {16, 16, 3, 3}, {{1, 1}, {1, 1}}, 3, true},
  };
  const auto training = kernels::measure_convolutions(context, network, DType::f32, true, 3);
  REQUIRE(training.each.size() == 2);
  CHECK(training.each[0].data == 0.0);
  CHECK(training.each[1].data > 0.0);
  CHECK(training.each[1].weights > 0.0);
  CHECK(training.step_seconds > 0.0);
  const auto frozen = kernels::measure_convolutions(context, network, DType::f32, false, 3);
  CHECK(frozen.step.forward > 0.0);
  CHECK(frozen.step.weights == 0.0);
  CHECK(context.allocator().statistics().bytes_in_use == 0);
}
