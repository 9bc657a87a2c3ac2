// SPDX-License-Identifier: Apache-2.0
// HostCommunicator: collectives of ranks on CPUs, over any Transport. One thread carries out
// asynchronous operations, strictly in order, so that reductions overlap with computing; a
// synchronous call with nothing before it runs in the caller's own thread, without a hand-over.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/collectives/algorithm_table.hpp"
#include "comm/communicator.hpp"
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
  using Task = std::function<void()>;
  struct Queued {
    Task task;
    std::shared_ptr<Work::State> state;
  };

  /// Throws UsageError in a forked child.
  void check_process() const;
  /// Carries out a task after those before it: here, if there are none, else in the thread.
  void in_order(const Task& task);
  void serve_queue();
  /// What the task threw. The peers are told.
  std::exception_ptr attempt(const Task& task) noexcept;
  void carry_out(Operation operation);
  void carry_out_message(const Operation& operation);

  std::unique_ptr<Transport> transport_;
  HostOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool busy_ = false;  // some thread is carrying out an operation
  bool stopping_ = false;
  std::exception_ptr failure_;  // what ended the group here
  pid_t process_;
  std::thread thread_;
};

}  // namespace collar::comm
