// SPDX-License-Identifier: Apache-2.0
// Checks that all ranks hold the same things: names, shapes and values of parameters, plans,
// settings. Ranks that differ would train different models without a word.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "engine/named_tensor.hpp"

namespace collar::comm {

/// Something that must be alike on all ranks, and a text that is equal where it is.
struct Claim {
  std::string name;
  std::string value;
};

/// Compares the lists of all ranks, in order. Called by all ranks. Where they differ, every rank
/// gets the same RankLostError that begins with `subject` and shows the first difference: its name,
/// both values and both ranks.
void verify_equal(Communicator& communicator, const std::string& subject,
                  std::span<const Claim> claims);

/// One claim a tensor: its type and shape, and, if wanted, a checksum of its bytes.
std::vector<Claim> claims_of(std::span<const NamedTensor> tensors, bool with_values);

/// Gives all ranks the root's values, after checking that names, types and shapes are alike, and
/// checks the values afterwards: how training begins with one model. Called by all ranks.
void broadcast_tensors(Communicator& communicator, std::span<const NamedTensor> tensors,
                       int root = 0);

}  // namespace collar::comm
