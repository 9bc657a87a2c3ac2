// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

void check_buffer(const char* what, ConstElements elements) {
  if (elements.count > 0 && elements.data == nullptr)
    throw UsageError(fmt::format("{}: {} elements at a null pointer", what, elements.count));
  if (elements.count > SIZE_MAX / 2 / size_of(elements.dtype))
    throw UsageError(
        fmt::format("{}: {} elements are more than memory holds", what, elements.count));
  if (reinterpret_cast<std::uintptr_t>(elements.data) % size_of(elements.dtype) != 0)
    throw UsageError(fmt::format("{}: a buffer of {} is not aligned to {} bytes", what,
                                 collar::name_of(elements.dtype), size_of(elements.dtype)));
}

void check_pair(const char* what, ConstElements send, std::size_t send_parts, ConstElements receive,
                std::size_t receive_parts) {
  check_buffer(what, send);
  check_buffer(what, receive);
  if (send.dtype != receive.dtype)
    throw UsageError(fmt::format("{}: sends {}, but receives {}", what, collar::name_of(send.dtype),
                                 collar::name_of(receive.dtype)));
  if (send.count * receive_parts != receive.count * send_parts)
    throw UsageError(fmt::format("{}: sends {} elements and receives {} of {} and {} parts", what,
                                 send.count, receive.count, send_parts, receive_parts));
}

void check_reduction(const char* what, DType dtype, Reduction how) {
  if (dtype == DType::boolean)
    throw UsageError(fmt::format("{}: boolean values cannot be combined: use u8", what));
  if (how.scale != 1 && !is_floating(dtype))
    throw UsageError(fmt::format("{}: a scale of {} needs a floating type, not {}", what, how.scale,
                                 collar::name_of(dtype)));
}

Operation operation_of(Collective collective, ConstElements send, Elements receive,
                       std::size_t count, Reduction how = {}, int peer = 0) {
  Operation operation;
  operation.collective = collective;
  operation.dtype = send.dtype;
  operation.reduction = how;
  operation.peer = peer;
  operation.count = count;
  operation.send = send.data;
  operation.receive = receive.data;
  return operation;
}

}  // namespace

void Communicator::check_peer(const char* what, int peer) const {
  if (peer < 0 || peer >= size())
    throw UsageError(fmt::format("{}: rank {} of a group of {}", what, peer, size()));
}

Operation Communicator::all_reduce_operation(ConstElements send, Elements receive,
                                             Reduction how) const {
  check_pair("all_reduce", send, 1, receive, 1);
  check_reduction("all_reduce", send.dtype, how);
  return operation_of(Collective::all_reduce, send, receive, send.count, how);
}

Operation Communicator::reduce_scatter_operation(ConstElements send, Elements receive,
                                                 Reduction how) const {
  check_pair("reduce_scatter", send, static_cast<std::size_t>(size()), receive, 1);
  check_reduction("reduce_scatter", send.dtype, how);
  return operation_of(Collective::reduce_scatter, send, receive, receive.count, how);
}

Operation Communicator::all_gather_operation(ConstElements send, Elements receive) const {
  check_pair("all_gather", send, 1, receive, static_cast<std::size_t>(size()));
  return operation_of(Collective::all_gather, send, receive, send.count);
}

Operation Communicator::broadcast_operation(Elements values, int root) const {
  check_buffer("broadcast", values);
  check_peer("broadcast", root);
  const ConstElements nothing(nullptr, 0, values.dtype);
  return operation_of(Collective::broadcast, nothing, values, values.count, {}, root);
}

Operation Communicator::reduce_operation(ConstElements send, Elements receive, int root,
                                         Reduction how) const {
  check_peer("reduce", root);
  check_buffer("reduce", send);
  if (rank() == root) check_pair("reduce", send, 1, receive, 1);
  check_reduction("reduce", send.dtype, how);
  return operation_of(Collective::reduce, send, receive, send.count, how, root);
}

Operation Communicator::send_operation(ConstElements values, int peer) const {
  check_buffer("send", values);
  check_peer("send", peer);
  if (peer == rank()) throw UsageError(fmt::format("send: rank {} to itself", peer));
  return operation_of(Collective::send, values, {}, values.count, {}, peer);
}

Operation Communicator::receive_operation(Elements values, int peer) const {
  check_buffer("receive", values);
  check_peer("receive", peer);
  if (peer == rank()) throw UsageError(fmt::format("receive: rank {} from itself", peer));
  const ConstElements nothing(nullptr, 0, values.dtype);
  return operation_of(Collective::receive, nothing, values, values.count, {}, peer);
}

void Communicator::all_reduce(ConstElements send, Elements receive, Reduction how) {
  run(all_reduce_operation(send, receive, how));
}
Work Communicator::all_reduce_async(ConstElements send, Elements receive, Reduction how) {
  return start(all_reduce_operation(send, receive, how));
}
void Communicator::reduce_scatter(ConstElements send, Elements receive, Reduction how) {
  run(reduce_scatter_operation(send, receive, how));
}
Work Communicator::reduce_scatter_async(ConstElements send, Elements receive, Reduction how) {
  return start(reduce_scatter_operation(send, receive, how));
}
void Communicator::all_gather(ConstElements send, Elements receive) {
  run(all_gather_operation(send, receive));
}
Work Communicator::all_gather_async(ConstElements send, Elements receive) {
  return start(all_gather_operation(send, receive));
}
void Communicator::broadcast(Elements values, int root) {
  run(broadcast_operation(values, root));
}
Work Communicator::broadcast_async(Elements values, int root) {
  return start(broadcast_operation(values, root));
}
void Communicator::reduce(ConstElements send, Elements receive, int root, Reduction how) {
  run(reduce_operation(send, receive, root, how));
}
Work Communicator::reduce_async(ConstElements send, Elements receive, int root, Reduction how) {
  return start(reduce_operation(send, receive, root, how));
}
void Communicator::barrier() {
  run(Operation{});
}
void Communicator::send(ConstElements values, int peer) {
  run(send_operation(values, peer));
}
void Communicator::receive(Elements values, int peer) {
  run(receive_operation(values, peer));
}
Work Communicator::send_async(ConstElements values, int peer) {
  return start(send_operation(values, peer));
}
Work Communicator::receive_async(Elements values, int peer) {
  return start(receive_operation(values, peer));
}

}  // namespace collar::comm
