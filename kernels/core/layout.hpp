// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a logical N, C, H, W tensor lie. Every tensor is dense: a layout is an order,
// never a set of strides. A blocked layout needs a channel count divisible by its block, so there
// are no padding channels anywhere; a tensor with other channel counts stays plain.
#pragma once

#include <cstdint>
#include <string_view>

namespace collar {

enum class Layout : std::uint8_t {
  plain,          ///< N, C, H, W: row-major in the logical order; the only layout of other ranks
  channels_last,  ///< N, H, W, C
  blocked8,       ///< N, C/8, H, W, 8
  blocked16       ///< N, C/16, H, W, 16
};

/// Channels that lie side by side: 8, 16, or 1.
constexpr int block_of(Layout layout) {
  return layout == Layout::blocked8 ? 8 : layout == Layout::blocked16 ? 16 : 1;
}

constexpr std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::plain:
      return "plain";
    case Layout::channels_last:
      return "channels_last";
    case Layout::blocked8:
      return "blocked8";
    case Layout::blocked16:
      return "blocked16";
  }
  return "unknown";
}

}  // namespace collar
