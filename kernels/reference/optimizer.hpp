// SPDX-License-Identifier: Apache-2.0
// The optimizers' formulas in double: the oracle of the tests. Contracts as in
// kernels/optimizer.hpp.
#pragma once

#include "kernels/optimizer.hpp"

namespace collar::kernels::reference {

void adam(View parameter, ConstView gradient, View m, View v, const AdamStep& step);
void sgd(View parameter, ConstView gradient, View buffer, const SgdStep& step);

}  // namespace collar::kernels::reference
