// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/algorithm_set.hpp"

#include "comm/collectives/direct.hpp"
#include "comm/collectives/ring.hpp"

namespace collar::comm {
namespace {

constexpr AlgorithmSet kDirect{true,
                               direct::all_reduce,
                               direct::reduce_scatter,
                               direct::all_gather,
                               direct::broadcast,
                               direct::reduce};
constexpr AlgorithmSet kRing{
    false, ring::all_reduce, ring::reduce_scatter, ring::all_gather, ring::broadcast, ring::reduce};

}  // namespace

const AlgorithmSet& set_of(Algorithm algorithm) {
  return algorithm == Algorithm::direct ? kDirect : kRing;
}

void AlgorithmSet::carry_out(Transport& transport, const Operation& operation) const {
  switch (operation.collective) {
    case Collective::all_reduce:
      return all_reduce(transport, operation);
    case Collective::reduce_scatter:
      return reduce_scatter(transport, operation);
    case Collective::all_gather:
      return all_gather(transport, operation);
    case Collective::broadcast:
      return broadcast(transport, operation);
    case Collective::reduce:
      return reduce(transport, operation);
    case Collective::barrier:
    case Collective::allocate:
    case Collective::send:
    case Collective::receive:
      return;
  }
}

}  // namespace collar::comm
