// SPDX-License-Identifier: Apache-2.0
#include "nn/schedule/gradual_warmup.hpp"

#include <fmt/format.h>

#include "kernels/core/error.hpp"

namespace collar::nn::rate {

double GradualWarmup::operator()(std::int64_t step, double base) const {
  if (multiplier < 1) {
    throw UsageError(
        fmt::format("GradualWarmup: multiplier must be at least 1, not {}", multiplier));
  }
  if (step > warmup) return after ? after(step - warmup - 1, base * multiplier) : base * multiplier;
  if (warmup == 0) return base * multiplier;
  const double progress = static_cast<double>(step) / static_cast<double>(warmup);
  return multiplier == 1 ? base * progress : base * ((multiplier - 1) * progress + 1);
}

}  // namespace collar::nn::rate
