// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

namespace collar::comm {

void Communicator::all_reduce(ConstElements send, Elements receive, Reduction how) {
  run(all_reduce_operation(send, receive, how));
}
Work Communicator::all_reduce_async(ConstElements send, Elements receive, Reduction how) {
  return start(all_reduce_operation(send, receive, how));
}
void Communicator::reduce_scatter(ConstElements send, Elements receive, Reduction how) {
  run(reduce_scatter_operation(me(), send, receive, how));
}
Work Communicator::reduce_scatter_async(ConstElements send, Elements receive, Reduction how) {
  return start(reduce_scatter_operation(me(), send, receive, how));
}
void Communicator::all_gather(ConstElements send, Elements receive) {
  run(all_gather_operation(me(), send, receive));
}
Work Communicator::all_gather_async(ConstElements send, Elements receive) {
  return start(all_gather_operation(me(), send, receive));
}
void Communicator::broadcast(Elements values, int root) {
  run(broadcast_operation(me(), values, root));
}
Work Communicator::broadcast_async(Elements values, int root) {
  return start(broadcast_operation(me(), values, root));
}
void Communicator::reduce(ConstElements send, Elements receive, int root, Reduction how) {
  run(reduce_operation(me(), send, receive, root, how));
}
Work Communicator::reduce_async(ConstElements send, Elements receive, int root, Reduction how) {
  return start(reduce_operation(me(), send, receive, root, how));
}
void Communicator::barrier() {
  run(Operation{});
}
void Communicator::send(ConstElements values, int peer) {
  run(send_operation(me(), values, peer));
}
void Communicator::receive(Elements values, int peer) {
  run(receive_operation(me(), values, peer));
}
Work Communicator::send_async(ConstElements values, int peer) {
  return start(send_operation(me(), values, peer));
}
Work Communicator::receive_async(Elements values, int peer) {
  return start(receive_operation(me(), values, peer));
}

}  // namespace collar::comm
