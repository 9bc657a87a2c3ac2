// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

using namespace arithmetic;

template <ReduceOp kOp, typename T>
void combine_as(double scale, void* destination, const void* incoming, std::size_t count) {
  using A = Accumulator<T>;
  T* const to = static_cast<T*>(destination);
  const T* const from = static_cast<const T*>(incoming);
  A block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* const pair[] = {from + begin, to + begin};
    tree_of_block<kOp>(pair, 2, 0, n, block);
    store(block, static_cast<A>(scale), n, to + begin);
  }
}

template <ReduceOp kOp, typename T>
void reduce_tree_as(double scale, std::span<const void* const> sources,
                    std::span<void* const> destinations, std::size_t count) {
  using A = Accumulator<T>;
  std::vector<const T*> from;
  for (const void* source : sources) from.push_back(static_cast<const T*>(source));
  A block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    tree_of_block<kOp>(from.data(), from.size(), begin, n, block);
    for (void* destination : destinations)
      store(block, static_cast<A>(scale), n, static_cast<T*>(destination) + begin);
  }
}

/// Calls `body` with the element type and the operation as types.
template <typename Body>
void dispatch(const Reduction& reduction, Body&& body) {
  const auto with_type = [&]<ReduceOp kOp>(std::integral_constant<ReduceOp, kOp> op) {
    switch (reduction.dtype) {
      case DType::f32:
        return body(op, float());
      case DType::f64:
        return body(op, double());
      case DType::bf16:
        return body(op, bfloat16());
      case DType::f16:
        return body(op, float16());
      case DType::u8:
        return body(op, std::uint8_t());
      case DType::i8:
        return body(op, std::int8_t());
      case DType::i32:
        return body(op, std::int32_t());
      case DType::i64:
        return body(op, std::int64_t());
      case DType::boolean:
        break;
    }
    throw UsageError(
        fmt::format("{} of {} is not defined", name_of(reduction.op), name_of(reduction.dtype)));
  };
  switch (reduction.op) {
    case ReduceOp::sum:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::sum>());
    case ReduceOp::product:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::product>());
    case ReduceOp::min:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::min>());
    case ReduceOp::max:
      return with_type(std::integral_constant<ReduceOp, ReduceOp::max>());
  }
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::product:
      return "product";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "unknown";
}

void combine(const Reduction& reduction, void* destination, const void* incoming,
             std::size_t count) {
  dispatch(reduction, [&]<ReduceOp kOp, typename T>(std::integral_constant<ReduceOp, kOp>, T) {
    combine_as<kOp, T>(reduction.scale, destination, incoming, count);
  });
}

void reduce_tree(const Reduction& reduction, std::span<const void* const> sources,
                 std::span<void* const> destinations, std::size_t count) {
  const bool nothing_to_do = reduction.scale == 1 && sources.size() == 1 &&
                             destinations.size() == 1 && sources[0] == destinations[0];
  if (nothing_to_do) return;
  dispatch(reduction, [&]<ReduceOp kOp, typename T>(std::integral_constant<ReduceOp, kOp>, T) {
    reduce_tree_as<kOp, T>(reduction.scale, sources, destinations, count);
  });
}

}  // namespace collar::comm
