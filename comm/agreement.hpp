// SPDX-License-Identifier: Apache-2.0
// What all ranks must have alike before they start: the parameters of the model, the plan of its
// buckets. Checked once, so that a disagreement is an error that names it, not a hang or a wrong
// sum later.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "engine/named_tensor.hpp"

namespace collar::comm {

/// One thing on which ranks must agree: what it is, and what this rank has ("f32 [64, 3, 7, 7]").
struct Claim {
  std::string subject;
  std::string value;

  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Compares the claims of all ranks: their SHA-256, and only where that differs the lists
/// themselves. Called by all ranks. Throws RankLostError, the same on every rank, that names the
/// first subject on which a rank differs from rank 0, and what both have. `what` says what is
/// compared: "parameters".
void require_agreement(Communicator& communicator, const std::string& what,
                       std::span<const Claim> claims);

/// Gives all ranks rank 0's values: first compares names, types and shapes, then broadcasts, then
/// compares checksums. Throws as require_agreement.
void broadcast_tensors(Communicator& communicator, const std::string& what,
                       std::span<NamedTensor> tensors);

}  // namespace collar::comm
