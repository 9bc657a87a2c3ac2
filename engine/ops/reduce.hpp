// SPDX-License-Identifier: Apache-2.0
// Sums and means.
#pragma once

#include "engine/tensor.hpp"

namespace collar {

/// The sum or mean of all elements, shape [].
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

/// The sum or mean over the given dimensions (negative ones count from the end), which are dropped,
/// or kept with extent 1.
Tensor sum(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions = false);
Tensor mean(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions = false);

}  // namespace collar
