// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli): the checksum of checkpoints and of TensorBoard's records. It finds damage,
// not attackers. Computed by the CPU's own instruction where there is one, by tables elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace collar {

/// The checksum of the bytes, or, given the checksum of what came before them, of both together.
/// Known answer: "123456789" gives e3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same by tables, whatever the CPU offers.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace collar
