// SPDX-License-Identifier: Apache-2.0
// AlgorithmSet: an algorithm as the functions that carry out each collective by it, and what it
// needs. A new algorithm is a new set.
#pragma once

#include "comm/transport/operation.hpp"
#include "comm/transport/transport.hpp"

namespace collar::comm {

struct AlgorithmSet {
  using Function = void (*)(Transport& transport, const Operation& operation);

  bool needs_peer_memory;
  Function all_reduce, reduce_scatter, all_gather, broadcast, reduce;

  /// Carries out an operation that all ranks have begun. Of a barrier, to have begun it is all.
  void carry_out(Transport& transport, const Operation& operation) const;
};

/// What each of them means is said in its header: direct.hpp, ring.hpp.
const AlgorithmSet& set_of(Algorithm algorithm);

}  // namespace collar::comm
