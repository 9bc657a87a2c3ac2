// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/direct.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/collectives/partition.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::comm::direct {
namespace {

constexpr std::size_t kLineBytes = 64;

/// One operation, and the arithmetic of its places.
struct Call {
  Call(Transport& transport, const Operation& what)
      : operation(what),
        memory(*transport.peer_memory()),
        rank(transport.rank()),
        size(transport.size()),
        ranks(static_cast<std::size_t>(size)),
        element_bytes(what.element_bytes()),
        per_line(kLineBytes / element_bytes) {}

  const std::byte* send(std::size_t element = 0) const {
    return static_cast<const std::byte*>(operation.send) + element * element_bytes;
  }
  std::byte* receive(std::size_t element = 0) const {
    return static_cast<std::byte*>(operation.receive) + element * element_bytes;
  }
  std::byte* staged(int peer, std::size_t piece, std::size_t element = 0) const {
    return memory.staging(peer, static_cast<int>(piece % 2)).data() + element * element_bytes;
  }
  /// Elements of a whole number of lines that fit `shares` times into half a staging area.
  std::size_t staged_elements(std::size_t shares) const {
    return memory.staging(rank, 0).size() / shares / kLineBytes * per_line;
  }
  /// Where rank `peer` has what lies at `local` here.
  std::byte* counterpart(int peer, const void* local) const {
    return static_cast<std::byte*>(memory.counterpart(peer, local));
  }
  void copy(void* to, const void* from, std::size_t elements) const {
    if (to != from && elements != 0) std::memcpy(to, from, elements * element_bytes);
  }
  bool is_shared() const { return memory.buffers_are_shared(); }

  const Operation& operation;
  PeerMemory& memory;
  int rank, size;
  std::size_t ranks, element_bytes, per_line;
};

/// Pushes `count` elements piece by piece through the two halves of the staging areas: while the
/// ranks work on one piece, each has already laid out its next. One barrier a piece. stage(piece,
/// begin, n) fills this rank's own half, work(piece, begin, n) reads and writes anybody's, and
/// collect(piece, begin, n) reads this rank's own.
template <typename Stage, typename Work, typename Collect>
void through_staging(const Call& call, std::size_t count, std::size_t piece_elements, Stage stage,
                     Work work, Collect collect) {
  const std::size_t pieces = ceil_div(count, piece_elements);
  const auto with = [&](auto&& step, std::size_t piece) {
    const std::size_t begin = piece * piece_elements;
    step(piece, begin, std::min(piece_elements, count - begin));
  };
  if (pieces == 0) return;
  with(stage, 0);
  call.memory.barrier();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    with(work, piece);
    if (piece + 1 < pieces) with(stage, piece + 1);
    call.memory.barrier();
    with(collect, piece);
  }
}

/// all_reduce and reduce differ in who gets the result: the ranks [first, last).
void reduce_to(Transport& transport, const Operation& operation, int first, int last) {
  const Call call(transport, operation);
  // Reduces this rank's part of `count` elements, which begin at from(peer) and to(peer).
  const auto reduce_own_part = [&](std::size_t count, auto&& from, auto&& to) {
    const Part part =
        part_of(count, call.ranks, static_cast<std::size_t>(call.rank), call.per_line);
    if (part.count == 0) return;
    const std::size_t offset = part.begin * call.element_bytes;
    std::vector<const void*> sources;
    std::vector<void*> targets;
    for (int peer = 0; peer < call.size; ++peer) sources.push_back(from(peer) + offset);
    for (int peer = first; peer < last; ++peer) targets.push_back(to(peer) + offset);
    reduce_tree(operation.dtype, operation.reduction, sources, targets, part.count);
  };
  if (call.is_shared()) {
    reduce_own_part(
        operation.count, [&](int peer) { return call.counterpart(peer, operation.send); },
        [&](int peer) { return call.counterpart(peer, operation.receive); });
    call.memory.barrier();
    return;
  }
  through_staging(
      call, operation.count, call.staged_elements(1),
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        call.copy(call.staged(call.rank, piece), call.send(begin), n);
      },
      [&](std::size_t piece, std::size_t, std::size_t n) {
        const auto staged = [&](int peer) { return call.staged(peer, piece); };
        reduce_own_part(n, staged, staged);
      },
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        if (call.rank >= first && call.rank < last)
          call.copy(call.receive(begin), call.staged(call.rank, piece), n);
      });
}

}  // namespace

void all_reduce(Transport& transport, const Operation& operation) {
  reduce_to(transport, operation, 0, transport.size());
}

void reduce(Transport& transport, const Operation& operation) {
  reduce_to(transport, operation, operation.peer, operation.peer + 1);
}

void reduce_scatter(Transport& transport, const Operation& operation) {
  const Call call(transport, operation);
  const std::size_t count = operation.count;
  const std::size_t own = static_cast<std::size_t>(call.rank) * count;
  const auto reduce_all = [&](auto&& from, void* target, std::size_t n) {
    std::vector<const void*> sources;
    for (int peer = 0; peer < call.size; ++peer) sources.push_back(from(peer));
    reduce_tree(operation.dtype, operation.reduction, sources, {&target, 1}, n);
  };
  if (call.is_shared()) {
    reduce_all([&](int peer) { return call.counterpart(peer, call.send(own)); }, call.receive(),
               count);
    call.memory.barrier();
    return;
  }
  const std::size_t piece_elements = call.staged_elements(call.ranks);
  const std::size_t own_share = static_cast<std::size_t>(call.rank) * piece_elements;
  through_staging(
      call, count, piece_elements,
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        for (std::size_t part = 0; part < call.ranks; ++part)
          call.copy(call.staged(call.rank, piece, part * piece_elements),
                    call.send(part * count + begin), n);
      },
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        reduce_all([&](int peer) { return call.staged(peer, piece, own_share); },
                   call.receive(begin), n);
      },
      [](std::size_t, std::size_t, std::size_t) {});
}

void all_gather(Transport& transport, const Operation& operation) {
  const Call call(transport, operation);
  const std::size_t count = operation.count;
  const std::size_t own = static_cast<std::size_t>(call.rank) * count;
  if (call.is_shared()) {
    for (int peer = 0; peer < call.size; ++peer)
      call.copy(call.counterpart(peer, call.receive(own)), call.send(), count);
    call.memory.barrier();
    return;
  }
  through_staging(
      call, count, call.staged_elements(1),
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        call.copy(call.staged(call.rank, piece), call.send(begin), n);
      },
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        for (int peer = 0; peer < call.size; ++peer)
          call.copy(call.receive(static_cast<std::size_t>(peer) * count + begin),
                    call.staged(peer, piece), n);
      },
      [](std::size_t, std::size_t, std::size_t) {});
}

void broadcast(Transport& transport, const Operation& operation) {
  const Call call(transport, operation);
  const int root = operation.peer;
  if (call.is_shared()) {
    if (call.rank != root)
      call.copy(call.receive(), call.counterpart(root, operation.receive), operation.count);
    call.memory.barrier();
    return;
  }
  through_staging(
      call, operation.count, call.staged_elements(1),
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        if (call.rank == root) call.copy(call.staged(root, piece), call.receive(begin), n);
      },
      [&](std::size_t piece, std::size_t begin, std::size_t n) {
        if (call.rank != root) call.copy(call.receive(begin), call.staged(root, piece), n);
      },
      [](std::size_t, std::size_t, std::size_t) {});
}

}  // namespace collar::comm::direct
