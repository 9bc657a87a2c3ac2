// SPDX-License-Identifier: Apache-2.0
// Changing the type or the layout of a tensor's elements, and nothing else.
#pragma once

#include "kernels/core/view.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::kernels {

/// y = x converted, any type to any type, element by element in storage order (same shape and
/// layout). Floats round to nearest even; float to integer truncates, saturates out of range and
/// makes NaN 0; anything but zero is true.
void cast(CpuContext& context, ConstView x, View y);

/// y = x in y's layout (and y's type: f32 and bf16 only). The one function that converts layouts;
/// the context counts it.
void convert_layout(CpuContext& context, ConstView x, View y);

}  // namespace collar::kernels
