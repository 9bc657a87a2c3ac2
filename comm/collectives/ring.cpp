// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/ring.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/collectives/partition.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::comm::ring {
namespace {

constexpr std::size_t kLineBytes = 64;
/// What travels at a time along the chain of a broadcast.
constexpr std::size_t kSegmentBytes = std::size_t{256} << 10;

/// A buffer in n parts, and the ring on which they travel.
class Parts {
 public:
  Parts(Transport& transport, const Operation& operation, std::byte* data, std::vector<Part> parts)
      : transport_(transport),
        dtype_(operation.dtype),
        data_(data),
        parts_(std::move(parts)),
        n_(transport.size()),
        rank_(transport.rank()) {}

  std::byte* data(int part) const { return data_ + at(part).begin * size_of(dtype_); }
  std::size_t bytes(int part) const { return at(part).count * size_of(dtype_); }

  /// After this, the part `rank` holds the reduction over all ranks. The last step applies the
  /// scale.
  void reduce_scatter(const Reduction& reduction) const {
    Reduction partial = reduction;
    partial.scale = 1;
    for (int step = 1; step < n_; ++step)
      pass(rank_ - step, rank_ - step - 1, step == n_ - 1 ? &reduction : &partial);
    if (n_ == 1) scale_own(reduction);
  }

  /// From every rank holding its own part to every rank holding all.
  void all_gather() const {
    for (int step = 0; step < n_ - 1; ++step) pass(rank_ - step, rank_ - step - 1, nullptr);
  }

 private:
  const Part& at(int part) const {
    return parts_[static_cast<std::size_t>(((part % n_) + n_) % n_)];
  }

  /// Sends a part to the next rank while another comes from the one before.
  void pass(int outgoing, int incoming, const Reduction* reduction) const {
    const Outgoing out{(rank_ + 1) % n_, data(outgoing), bytes(outgoing)};
    const Incoming in{(rank_ + n_ - 1) % n_, data(incoming), bytes(incoming), reduction, dtype_};
    transport_.exchange({&out, 1}, {&in, 1});
  }

  void scale_own(const Reduction& reduction) const {
    const void* const source = data(0);
    void* const destination = data(0);
    reduce_tree(dtype_, reduction, {&source, 1}, {&destination, 1}, at(0).count);
  }

  Transport& transport_;
  DType dtype_;
  std::byte* data_;
  std::vector<Part> parts_;
  int n_, rank_;
};

/// `count` elements divided evenly.
std::vector<Part> divided(std::size_t count, int n, std::size_t element_bytes) {
  std::vector<Part> parts;
  for (int i = 0; i < n; ++i)
    parts.push_back(part_of(count, static_cast<std::size_t>(n), static_cast<std::size_t>(i),
                            kLineBytes / element_bytes));
  return parts;
}

/// n parts of `count` elements each.
std::vector<Part> uniform(std::size_t count, int n) {
  std::vector<Part> parts;
  for (int i = 0; i < n; ++i) parts.push_back({static_cast<std::size_t>(i) * count, count});
  return parts;
}

void copy_unless_same(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes != 0) std::memmove(to, from, bytes);
}

std::byte* as_bytes(void* pointer) {
  return static_cast<std::byte*>(pointer);
}

}  // namespace

void all_reduce(Transport& transport, const Operation& operation) {
  copy_unless_same(operation.receive, operation.send, operation.bytes());
  const Parts parts(transport, operation, as_bytes(operation.receive),
                    divided(operation.count, transport.size(), operation.element_bytes()));
  parts.reduce_scatter(operation.reduction);
  parts.all_gather();
}

void reduce_scatter(Transport& transport, const Operation& operation) {
  const auto n = static_cast<std::size_t>(transport.size());
  const auto* send = static_cast<const std::byte*>(operation.send);
  std::vector<std::byte> work(send, send + n * operation.bytes());
  const Parts parts(transport, operation, work.data(), uniform(operation.count, transport.size()));
  parts.reduce_scatter(operation.reduction);
  copy_unless_same(operation.receive, parts.data(transport.rank()), operation.bytes());
}

void all_gather(Transport& transport, const Operation& operation) {
  const Parts parts(transport, operation, as_bytes(operation.receive),
                    uniform(operation.count, transport.size()));
  copy_unless_same(parts.data(transport.rank()), operation.send, operation.bytes());
  parts.all_gather();
}

void broadcast(Transport& transport, const Operation& operation) {
  const int n = transport.size();
  const int place = (transport.rank() - operation.peer + n) % n;  // in the chain; the root's is 0
  const bool receives = place > 0;
  const bool sends = place < n - 1;
  std::byte* const data = as_bytes(operation.receive);
  const std::size_t segments = ceil_div(operation.bytes(), kSegmentBytes);
  const auto bytes_of = [&](std::size_t segment) {
    return std::min(kSegmentBytes, operation.bytes() - segment * kSegmentBytes);
  };
  // In turn t a rank that receives gets segment t and passes on segment t - 1.
  const std::size_t delay = receives ? 1 : 0;
  for (std::size_t turn = 0; turn < segments + delay; ++turn) {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    if (sends && turn >= delay && turn - delay < segments)
      out.push_back({(transport.rank() + 1) % n, data + (turn - delay) * kSegmentBytes,
                     bytes_of(turn - delay)});
    if (receives && turn < segments)
      in.push_back({(transport.rank() + n - 1) % n, data + turn * kSegmentBytes, bytes_of(turn)});
    transport.exchange(out, in);
  }
}

void reduce(Transport& transport, const Operation& operation) {
  const auto* send = static_cast<const std::byte*>(operation.send);
  std::vector<std::byte> work(send, send + operation.bytes());
  const Parts parts(transport, operation, work.data(),
                    divided(operation.count, transport.size(), operation.element_bytes()));
  parts.reduce_scatter(operation.reduction);
  const int rank = transport.rank();
  if (rank != operation.peer) {
    const Outgoing out{operation.peer, parts.data(rank), parts.bytes(rank)};
    transport.exchange({&out, 1}, {});
    return;
  }
  std::vector<Incoming> in;
  for (int peer = 0; peer < transport.size(); ++peer) {
    std::byte* const place = as_bytes(operation.receive) + (parts.data(peer) - work.data());
    if (peer == rank)
      copy_unless_same(place, parts.data(peer), parts.bytes(peer));
    else
      in.push_back({peer, place, parts.bytes(peer)});
  }
  transport.exchange({}, in);
}

}  // namespace collar::comm::ring
