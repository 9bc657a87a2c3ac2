// SPDX-License-Identifier: Apache-2.0
// Operation: one call of a collective or of send/receive as data: what a communicator queues, an
// algorithm carries out and a fingerprint compares over ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/transport/reduce.hpp"
#include "kernels/core/dtype.hpp"
#include "kernels/core/view.hpp"

namespace collar::comm {

/// `count` elements that lie side by side. Made from a pointer, a span or a tensor's view.
struct ConstElements {
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;

  ConstElements() = default;
  ConstElements(const void* pointer, std::size_t n, DType type)
      : data(pointer), count(n), dtype(type) {}
  template <typename T, std::size_t kExtent>
  ConstElements(std::span<T, kExtent> span)  // NOLINT: meant to be implicit
      : data(span.data()), count(span.size()), dtype(dtype_of<std::remove_const_t<T>>) {}
  ConstElements(const ConstView& view)  // NOLINT: meant to be implicit
      : data(view.data), count(static_cast<std::size_t>(view.numel())), dtype(view.dtype) {}

  std::size_t bytes() const { return count * size_of(dtype); }
};

struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;

  Elements() = default;
  Elements(void* pointer, std::size_t n, DType type) : data(pointer), count(n), dtype(type) {}
  template <typename T, std::size_t kExtent>
  Elements(std::span<T, kExtent> span)  // NOLINT: meant to be implicit
      : data(span.data()), count(span.size()), dtype(dtype_of<T>) {}
  Elements(const View& view)  // NOLINT: meant to be implicit
      : data(view.data), count(static_cast<std::size_t>(view.numel())), dtype(view.dtype) {}

  std::size_t bytes() const { return count * size_of(dtype); }
  operator ConstElements() const { return {data, count, dtype}; }  // NOLINT: meant to be implicit
};

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  barrier,
  allocate,
  send,
  receive
};

/// How a collective is carried out. What each means is said in its header: direct.hpp, ring.hpp.
enum class Algorithm : std::uint8_t { direct, ring };

std::string_view name_of(Collective collective);
std::string_view name_of(Algorithm algorithm);

struct Operation {
  Collective collective = Collective::barrier;
  Algorithm algorithm = Algorithm::direct;
  DType dtype = DType::u8;
  Reduction reduction;
  int peer = 0;  ///< root of broadcast and reduce; the other side of send and receive
  std::size_t count =
      0;  ///< all_reduce, reduce, broadcast, send, receive: all elements; reduce_scatter,
          ///< all_gather: elements of one rank's part; allocate: bytes
  const void* send = nullptr;
  void* receive = nullptr;

  std::size_t element_bytes() const { return size_of(dtype); }
  std::size_t bytes() const { return count * element_bytes(); }
};

/// The part of an operation on which all ranks must agree, in words that fit in atomics of shared
/// memory.
struct Fingerprint {
  std::uint64_t kind =
      0;  ///< collective, algorithm, dtype, op, root: a byte, a byte, a byte, a byte, 32 bits
  std::uint64_t count = 0;
  std::uint64_t scale = 0;  ///< the bits of the double

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

Fingerprint fingerprint_of(const Operation& operation);

/// "all_reduce(1000 × f32, sum, ring)", "broadcast(7 × i64, root 2, direct)"
std::string describe(const Fingerprint& fingerprint);
inline std::string describe(const Operation& operation) {
  return describe(fingerprint_of(operation));
}

}  // namespace collar::comm
