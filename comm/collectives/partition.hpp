// SPDX-License-Identifier: Apache-2.0
// How the elements of a buffer are divided among ranks: parts of equal size, on cache-line
// boundaries so that no two ranks write to one line, the last ones shorter or empty.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/core/rounding.hpp"

namespace collar::comm {

struct Part {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// Part `index` of `parts` of `count` elements of which `per_line` fill a cache line.
constexpr Part part_of(std::size_t count, std::size_t parts, std::size_t index,
                       std::size_t per_line) {
  const std::size_t size = ceil_div(ceil_div(count, per_line), parts) * per_line;
  const std::size_t begin = std::min(index * size, count);
  return {begin, std::min(size, count - begin)};
}

}  // namespace collar::comm
