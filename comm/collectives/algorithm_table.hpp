// SPDX-License-Identifier: Apache-2.0
// AlgorithmTable: which algorithm carries out a collective of how many bytes. A default for shared
// memory, and what the user says instead (COLLAR_ALGO=all_reduce=ring, or with sizes:
// all_reduce=direct:0-64K;ring:64K-max, reduce=ring).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transport/operation.hpp"

namespace collar::comm {

class AlgorithmTable {
 public:
  /// direct for everything.
  AlgorithmTable() = default;
  /// "collective=algorithm[:from-to][;algorithm:from-to…][,collective=…]", sizes in bytes with K,
  /// M, G or "max"; `to` is exclusive. Sizes no range covers stay with the default. Throws
  /// UsageError that shows the part it cannot read.
  explicit AlgorithmTable(std::string_view text);

  Algorithm choose(Collective collective, std::size_t bytes) const;

 private:
  struct Range {
    Algorithm algorithm;
    std::size_t from, to;
  };
  std::map<Collective, std::vector<Range>> ranges_;
};

}  // namespace collar::comm
