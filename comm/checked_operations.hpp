// SPDX-License-Identifier: Apache-2.0
// From the arguments of a Communicator's call to the Operation that it means. Throw UsageError
// where the arguments cannot be right on this rank: null or unaligned pointers, types or counts
// that do not fit together, a rank that the group does not have.
#pragma once

#include "comm/transport/operation.hpp"

namespace collar::comm {

/// Whose call it is.
struct GroupMember {
  int rank;
  int size;
};

Operation all_reduce_operation(ConstElements send, Elements receive, Reduction how);
Operation reduce_scatter_operation(const GroupMember& me, ConstElements send, Elements receive,
                                   Reduction how);
Operation all_gather_operation(const GroupMember& me, ConstElements send, Elements receive);
Operation broadcast_operation(const GroupMember& me, Elements values, int root);
Operation reduce_operation(const GroupMember& me, ConstElements send, Elements receive, int root,
                           Reduction how);
Operation send_operation(const GroupMember& me, ConstElements values, int peer);
Operation receive_operation(const GroupMember& me, Elements values, int peer);

}  // namespace collar::comm
