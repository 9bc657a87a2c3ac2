// SPDX-License-Identifier: Apache-2.0
// Sums and means of f32 and bf16 in any layout. Sums are formed in f64 in a fixed order and rounded
// once to the type of x, so they do not depend on the number of threads. The sum of nothing is 0,
// its mean NaN.
#pragma once

#include "engine/tensor.hpp"

namespace collar {

/// The sum or mean of all elements, shape [].
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

/// The sum or mean over the given dimensions (negative ones count from the end; an empty list
/// leaves x as it is), which are dropped, or kept with extent 1. Throws ShapeError for a dimension
/// that does not exist or is named twice. The result is plain.
Tensor sum(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions = false);
Tensor mean(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions = false);

}  // namespace collar
