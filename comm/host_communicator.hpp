// SPDX-License-Identifier: Apache-2.0
// HostCommunicator: collectives of ranks on CPUs, over any Transport. One thread carries out
// asynchronous operations, strictly in order, so that reductions overlap with computing; a
// synchronous call with nothing before it runs in the caller's own thread, without a hand-over.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>

#include "comm/collectives/algorithm_table.hpp"
#include "comm/communicator.hpp"
#include "comm/ordered_executor.hpp"
#include "comm/transport/transport.hpp"

namespace collar::comm {

struct HostOptions {
  /// How long an operation may take before the ranks that keep it waiting are declared lost.
  std::chrono::milliseconds timeout{60'000};
  AlgorithmTable algorithms;
};

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(std::unique_ptr<Transport> transport, const HostOptions& options = {});
  /// Leaves the group. Unfinished operations end it for all ranks; never waits for a peer.
  ~HostCommunicator() override;
  HostCommunicator(const HostCommunicator&) = delete;
  HostCommunicator& operator=(const HostCommunicator&) = delete;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  void abort(const std::string& reason) override;

 protected:
  Work start(Operation operation) override;
  void run(Operation operation) override;

 private:
  /// Throws UsageError in a forked child.
  void check_process() const;
  /// The task, such that the peers are told if it fails.
  OrderedExecutor::Task guarded(OrderedExecutor::Task task);
  void carry_out(Operation operation);
  void carry_out_message(const Operation& operation);

  std::unique_ptr<Transport> transport_;
  HostOptions options_;
  pid_t process_;
  std::unique_ptr<OrderedExecutor> executor_;
};

}  // namespace collar::comm
