// SPDX-License-Identifier: Apache-2.0
// How many positions a window has that slides over an image: the one place where the extents of
// convolutions and pooling are checked.
#include <fmt/format.h>

#include <limits>

#include "kernels/conv.hpp"
#include "kernels/core/error.hpp"
#include "kernels/pool.hpp"

namespace collar::kernels {
namespace {

/// One axis of an image and of the window.
struct Axis {
  std::int64_t input, kernel, stride, padding, dilation;
};

std::int64_t positions(const char* op, const Axis& axis, bool ceil_mode) {
  const auto [input, kernel, stride, padding, dilation] = axis;
  // What backends keep in an int; and nothing below overflows.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto between = [](std::int64_t least, std::int64_t value) {
    return least <= value && value <= kMost;
  };
  if (!between(0, input) || !between(1, kernel) || !between(1, stride) || !between(0, padding) ||
      !between(1, dilation)) {
    throw ShapeError(fmt::format(
        "{}: kernel {}, stride {} and dilation {} must be at least 1, padding {} at least 0, and "
        "none of them nor the input's extent {} above {}",
        op, kernel, stride, dilation, padding, input, kMost));
  }
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  const std::int64_t room = input + 2 * padding - reach;
  if (room < 0 && !(ceil_mode && room > -stride)) {
    throw ShapeError(
        fmt::format("{}: a window of {} does not fit into an input of {} with padding {}", op,
                    reach, input, padding));
  }
  std::int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= input + padding) --count;
  return count;
}

}  // namespace

Shape conv2d_output_shape(const Shape& x, const Shape& w, const Conv2dGeometry& g) {
  const auto extent = [&](int dimension, std::size_t axis) {
    return positions(
        "conv2d", {x[dimension], w[dimension], g.stride[axis], g.padding[axis], g.dilation[axis]},
        false);
  };
  return {x[0], w[0], extent(2, 0), extent(3, 1)};
}

Shape pool2d_output_shape(const Shape& x, const Pool2dGeometry& g) {
  const auto extent = [&](int dimension, std::size_t axis) {
    if (g.padding[axis] > g.kernel[axis] / 2) {
      throw ShapeError(fmt::format("pool2d: padding {} must be at most half the kernel size {}",
                                   g.padding[axis], g.kernel[axis]));
    }
    return positions(
        "pool2d", {x[dimension], g.kernel[axis], g.stride[axis], g.padding[axis], g.dilation[axis]},
        g.ceil_mode);
  };
  return {x[0], x[1], extent(2, 0), extent(3, 1)};
}

}  // namespace collar::kernels
