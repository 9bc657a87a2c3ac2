// SPDX-License-Identifier: Apache-2.0
// The conversion of layouts, element by element: the oracle of the tests.
#pragma once

#include "kernels/core/view.hpp"

namespace collar::kernels::reference {

/// y = x in y's layout and type; f32, bf16 and f16.
void convert_layout(ConstView x, View y);

}  // namespace collar::kernels::reference
