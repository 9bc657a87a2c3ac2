// SPDX-License-Identifier: Apache-2.0
// From the element type and the number of lanes, known at run time, to template arguments.
#pragma once

#include "kernels/cpu/vector/lanes.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels::COLLAR_ISA_NAMESPACE {

template <typename T>
struct ElementType {
  using Type = T;
};
template <int W>
struct LaneCount {
  static constexpr int kWidth = W;
};

/// body(ElementType<float or bfloat16>)
template <typename Body>
COLLAR_INLINE void visit_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16) {
    body(ElementType<bfloat16>{});
  } else {
    body(ElementType<float>{});
  }
}

/// body(ElementType, LaneCount<16, 8 or 1>)
template <typename Body>
COLLAR_INLINE void visit(DType dtype, int lanes, const Body& body) {
  visit_type(dtype, [&](auto type) {
    if (lanes == kLanes) {
      body(type, LaneCount<kLanes>{});
    } else if (lanes == 8) {
      body(type, LaneCount<8>{});
    } else {
      body(type, LaneCount<1>{});
    }
  });
}

}  // namespace collar::kernels::COLLAR_ISA_NAMESPACE
