// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters. Each tensor draws from a stream keyed by a seed and its name
// (engine/random.hpp), so the values do not depend on the order of construction, on other
// parameters, or on the machine.
#pragma once

#include <cstdint>
#include <string>

#include "engine/tensor.hpp"

namespace collar::nn {

/// Normal with mean 0. `tensor` is f32 and on the host's memory; the change counts as one in place.
void fill_normal(Tensor& tensor, double standard_deviation, std::uint64_t seed,
                 const std::string& name);
/// Uniform in [-bound, bound).
void fill_uniform(Tensor& tensor, double bound, std::uint64_t seed, const std::string& name);
void fill_constant(Tensor& tensor, float value);

}  // namespace collar::nn
