// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/groups.hpp"

#include <fmt/format.h>

#include "kernels/core/error.hpp"

namespace collar::nn {

bool takes_weight_decay(const Parameter& parameter) {
  return parameter.tensor.rank() > 1 && !parameter.name.ends_with(".bias");
}

void require_option(std::string_view optimizer, std::string_view option, double value, bool valid) {
  if (!valid) {
    throw UsageError(fmt::format("{}: {} = {} is outside its range", optimizer, option, value));
  }
}

}  // namespace collar::nn
