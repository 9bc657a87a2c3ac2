// SPDX-License-Identifier: Apache-2.0
// Hashes as golden files have them: 64 hexadecimal digits of the bytes of some values.
#pragma once

#include <ranges>
#include <span>
#include <string>

#include "engine/io/sha256.hpp"

namespace collar::test {

/// Of the bytes of a vector, span or text.
template <std::ranges::contiguous_range Values>
std::string sha256_of(const Values& values) {
  return to_hex(Sha256().update(std::as_bytes(std::span(values))).finish());
}

}  // namespace collar::test
