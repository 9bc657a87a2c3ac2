// SPDX-License-Identifier: Apache-2.0
// Which instructions this CPU has, as far as the kernels care. Each level includes the ones before
// it.
#pragma once

#include <cstdint>
#include <string_view>

namespace collar {

enum class Isa : std::uint8_t { baseline, avx2, avx512, avx512_bf16 };

/// The best level of the CPU we run on, capped by the environment variable COLLAR_ISA if that is
/// set. Throws UsageError if COLLAR_ISA names no level or one that the CPU lacks.
Isa detect_isa();
/// The level of the CPU itself.
Isa hardware_isa();

std::string_view name_of(Isa isa);
/// Throws UsageError that lists the names.
Isa isa_from_name(std::string_view name);

}  // namespace collar
