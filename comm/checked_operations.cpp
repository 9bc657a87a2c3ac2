// SPDX-License-Identifier: Apache-2.0
#include "comm/checked_operations.hpp"

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

void check_peer(const char* what, const GroupMember& me, int peer) {
  if (peer < 0 || peer >= me.size)
    throw UsageError(fmt::format("{}: rank {} of a group of {}", what, peer, me.size));
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

Operation all_reduce_operation(ConstElements send, Elements receive, Reduction how) {
  check_pair("all_reduce", send, 1, receive, 1);
  check_reduction("all_reduce", send.dtype, how);
  return operation_of(Collective::all_reduce, send, receive, send.count, how);
}

Operation reduce_scatter_operation(const GroupMember& me, ConstElements send, Elements receive,
                                   Reduction how) {
  check_pair("reduce_scatter", send, static_cast<std::size_t>(me.size), receive, 1);
  check_reduction("reduce_scatter", send.dtype, how);
  return operation_of(Collective::reduce_scatter, send, receive, receive.count, how);
}

Operation all_gather_operation(const GroupMember& me, ConstElements send, Elements receive) {
  check_pair("all_gather", send, 1, receive, static_cast<std::size_t>(me.size));
  return operation_of(Collective::all_gather, send, receive, send.count);
}

Operation broadcast_operation(const GroupMember& me, Elements values, int root) {
  check_buffer("broadcast", values);
  check_peer("broadcast", me, root);
  const ConstElements nothing(nullptr, 0, values.dtype);
  return operation_of(Collective::broadcast, nothing, values, values.count, {}, root);
}

Operation reduce_operation(const GroupMember& me, ConstElements send, Elements receive, int root,
                           Reduction how) {
  check_peer("reduce", me, root);
  check_buffer("reduce", send);
  if (me.rank == root) check_pair("reduce", send, 1, receive, 1);
  check_reduction("reduce", send.dtype, how);
  return operation_of(Collective::reduce, send, receive, send.count, how, root);
}

Operation send_operation(const GroupMember& me, ConstElements values, int peer) {
  check_buffer("send", values);
  check_peer("send", me, peer);
  if (peer == me.rank) throw UsageError(fmt::format("send: rank {} to itself", peer));
  return operation_of(Collective::send, values, {}, values.count, {}, peer);
}

Operation receive_operation(const GroupMember& me, Elements values, int peer) {
  check_buffer("receive", values);
  check_peer("receive", me, peer);
  if (peer == me.rank) throw UsageError(fmt::format("receive: rank {} from itself", peer));
  const ConstElements nothing(nullptr, 0, values.dtype);
  return operation_of(Collective::receive, nothing, values, values.count, {}, peer);
}

}  // namespace collar::comm
