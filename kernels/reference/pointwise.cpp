// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/pointwise.hpp"

#include "kernels/core/element.hpp"

namespace collar::kernels::reference {
namespace {

/// The flat position in an operand that is broadcast to y of y's flat position i.
std::int64_t operand_position(const Shape& operand, const Shape& y, std::int64_t i) {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  for (int axis = 1; axis <= y.rank(); ++axis) {
    const std::int64_t coordinate = i % y[-axis];
    i /= y[-axis];
    if (axis > operand.rank()) continue;
    position += (operand[-axis] == 1 ? 0 : coordinate) * stride;
    stride *= operand[-axis];
  }
  return position;
}

}  // namespace

void binary(BinaryOp op, ConstView a, ConstView b, View y) {
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const float left = read_float(a, operand_position(a.shape, y.shape, i));
    const float right = read_float(b, operand_position(b.shape, y.shape, i));
    const float result = op == BinaryOp::add        ? left + right
                         : op == BinaryOp::subtract ? left - right
                                                    : left * right;
    write_float(y, i, result);
  }
}

void relu_forward(ConstView x, View y, View mask) {
  for (std::int64_t i = 0; mask && i < mask.numel(); ++i) mask.as<std::uint8_t>()[i] = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const float value = read_float(x, i);
    write_float(y, i, value < 0 ? 0.0f : value);
    if (mask && !(value <= 0)) {
      mask.as<std::uint8_t>()[i / 8] |= static_cast<std::uint8_t>(1u << i % 8);
    }
  }
}

void relu_backward(ConstView dy, ConstView mask, View dx) {
  for (std::int64_t i = 0; i < dx.numel(); ++i) {
    const bool passes = (mask.as<std::uint8_t>()[i / 8] >> i % 8 & 1) != 0;
    write_float(dx, i, passes ? read_float(dy, i) : 0.0f);
  }
}

}  // namespace collar::kernels::reference
