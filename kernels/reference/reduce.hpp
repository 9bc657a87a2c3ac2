// SPDX-License-Identifier: Apache-2.0
// Sums in double and sorting: the oracle of the tests. Contracts as in kernels/reduce.hpp.
#pragma once

#include "kernels/reduce.hpp"

namespace collar::kernels::reference {

void sum_to(ConstView x, View y, double factor);
double squared_norm(ConstView x);
void top_k(ConstView x, View index);

}  // namespace collar::kernels::reference
