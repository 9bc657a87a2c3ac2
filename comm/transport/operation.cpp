// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/operation.hpp"

#include <fmt/format.h>

#include <bit>

namespace collar::comm {

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
    case Collective::reduce:
      return "reduce";
    case Collective::barrier:
      return "barrier";
    case Collective::allocate:
      return "allocate";
    case Collective::send:
      return "send";
    case Collective::receive:
      return "receive";
  }
  return "unknown";
}

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::direct:
      return "direct";
    case Algorithm::ring:
      return "ring";
  }
  return "unknown";
}

Fingerprint fingerprint_of(const Operation& operation) {
  const auto byte = [](auto value, int place) {
    return static_cast<std::uint64_t>(value) << (8 * place);
  };
  return {byte(operation.collective, 0) | byte(operation.algorithm, 1) | byte(operation.dtype, 2) |
              byte(operation.reduction.op, 3) | byte(static_cast<std::uint32_t>(operation.peer), 4),
          operation.count, std::bit_cast<std::uint64_t>(operation.reduction.scale)};
}

std::string describe(const Fingerprint& fingerprint) {
  const auto byte = [&](int place) {
    return static_cast<std::uint8_t>(fingerprint.kind >> (8 * place));
  };
  const auto collective = static_cast<Collective>(byte(0));
  const std::string_view algorithm = name_of(static_cast<Algorithm>(byte(1)));
  const std::string_view op = name_of(static_cast<ReduceOp>(byte(3)));
  const std::string elements =
      fmt::format("{} × {}", fingerprint.count, collar::name_of(static_cast<DType>(byte(2))));
  const auto peer = static_cast<std::int32_t>(fingerprint.kind >> 32);
  const auto scale = std::bit_cast<double>(fingerprint.scale);
  const std::string times = scale == 1 ? "" : fmt::format(" × {:.9g}", scale);
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      return fmt::format("{}({}, {}{}, {})", name_of(collective), elements, op, times, algorithm);
    case Collective::reduce:
      return fmt::format("reduce({}, {}{}, root {}, {})", elements, op, times, peer, algorithm);
    case Collective::broadcast:
      return fmt::format("broadcast({}, root {}, {})", elements, peer, algorithm);
    case Collective::all_gather:
      return fmt::format("all_gather({}, {})", elements, algorithm);
    case Collective::send:
      return fmt::format("send({} to rank {})", elements, peer);
    case Collective::receive:
      return fmt::format("receive({} from rank {})", elements, peer);
    case Collective::allocate:
      return fmt::format("allocate({} bytes)", fingerprint.count);
    case Collective::barrier:
      return "barrier()";
  }
  return "an unknown operation";
}

}  // namespace collar::comm
