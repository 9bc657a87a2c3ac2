// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/isa.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/core/error.hpp"
#include "kernels/core/names.hpp"

namespace collar {
namespace {

constexpr NameTable<Isa, 4> kNames{{{Isa::baseline, "baseline"},
                                    {Isa::avx2, "avx2"},
                                    {Isa::avx512, "avx512"},
                                    {Isa::avx512_bf16, "avx512_bf16"}}};

}  // namespace

Isa hardware_isa() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx2 && avx512 && __builtin_cpu_supports("avx512bf16")) return Isa::avx512_bf16;
  if (avx2 && avx512) return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa detect_isa() {
  const Isa hardware = hardware_isa();
  const char* wanted = std::getenv("COLLAR_ISA");
  if (wanted == nullptr || *wanted == '\0') return hardware;
  const Isa cap = isa_from_name(wanted);
  if (cap > hardware) {
    throw UsageError(
        fmt::format("COLLAR_ISA={}, but this CPU offers only {}", wanted, name_of(hardware)));
  }
  return cap;
}

std::string_view name_of(Isa isa) {
  return name_in(kNames, isa);
}

Isa isa_from_name(std::string_view name) {
  return value_in(kNames, "instruction set", name);
}

}  // namespace collar
