// SPDX-License-Identifier: Apache-2.0
// Parameter groups: how they are taken apart by an optimizer, and the usual way to form them
// (weight decay for weights only).
#pragma once

#include <string_view>
#include <vector>

#include "nn/optim/optimizer.hpp"

namespace collar::nn {

/// Whether timm's trainer lets a parameter decay: matrices and kernels do, biases and the vectors
/// of normalisations do not.
bool takes_weight_decay(const Parameter& parameter);

/// Two groups with the same options, the first with a weight decay of 0 for what does not take any.
/// An empty group is left out; without weight decay there is one group. As timm's
/// param_groups_weight_decay.
template <typename Options>
std::vector<ParameterGroup<Options>> weight_decay_groups(const Parameters& parameters,
                                                         const Options& options) {
  ParameterGroup<Options> without{{}, options};
  ParameterGroup<Options> with{{}, options};
  without.options.weight_decay = 0;
  for (const Parameter& parameter : parameters) {
    const bool decays = options.weight_decay != 0 && takes_weight_decay(parameter);
    (decays ? with : without).parameters.push_back(parameter);
  }
  std::vector<ParameterGroup<Options>> groups;
  if (!without.parameters.empty()) groups.push_back(without);
  if (!with.parameters.empty()) groups.push_back(with);
  return groups;
}

template <typename Options>
std::vector<Parameters> parameters_of(const std::vector<ParameterGroup<Options>>& groups) {
  std::vector<Parameters> all;
  for (const auto& group : groups) all.push_back(group.parameters);
  return all;
}

template <typename Options>
std::vector<Options> options_of(const std::vector<ParameterGroup<Options>>& groups) {
  std::vector<Options> all;
  for (const auto& group : groups) all.push_back(group.options);
  return all;
}

/// Throws UsageError that names the option unless `valid`.
void require_option(std::string_view optimizer, std::string_view option, double value, bool valid);

}  // namespace collar::nn
