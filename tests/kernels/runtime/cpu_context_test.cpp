// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cpu_context.hpp"

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"
#include "kernels/runtime/runtime.hpp"

using namespace collar;
using Catch::Matchers::Contains;

TEST_CASE("a context with more than the hardware has is refused") {
  if (hardware_isa() < Isa::avx512_bf16) {
    CHECK_THROWS_WITH(CpuContext({.isa = Isa::avx512_bf16}),
                      Contains("avx512_bf16") && Contains("offers only"));
  }
  CHECK(CpuContext({.isa = Isa::baseline}).isa() == Isa::baseline);
  CHECK_THROWS_WITH(CpuContext({.threads = -1}), Contains("0 (all CPUs) to 1024, got -1"));
  CHECK_THROWS_AS(CpuContext({.threads = 1025}), UsageError);
  CHECK(CpuContext().threads() == available_cpus());
}

TEST_CASE("a device that this build cannot compute on is refused") {
  RuntimeOptions options;
  options.device.kind = Device::Kind::cuda;
  CHECK_THROWS_WITH(Runtime(options), Contains("on the CPU only"));
}

TEST_CASE("names of instruction sets and back") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    CHECK(isa_from_name(name_of(isa)) == isa);
  }
  CHECK_THROWS_WITH(isa_from_name("sse9"), Contains("baseline, avx2, avx512, avx512_bf16"));
}
