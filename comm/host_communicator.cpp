// SPDX-License-Identifier: Apache-2.0
#include "comm/host_communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "comm/collectives/algorithm_set.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

/// What precedes the bytes of a send, so that the receiver can tell a wrong count or type.
struct alignas(64) MessageHeader {
  Fingerprint fingerprint;
};

void check_message(const Operation& expected, const Fingerprint& sent, int rank) {
  Operation counterpart = expected;
  counterpart.collective = Collective::send;
  counterpart.peer = rank;
  if (sent != fingerprint_of(counterpart))
    throw RankLostError(fmt::format("ranks disagree: rank {} called {}, but rank {} called {}",
                                    expected.peer, describe(sent), rank, describe(expected)));
}

}  // namespace

HostCommunicator::HostCommunicator(std::unique_ptr<Transport> transport, const HostOptions& options)
    : transport_(std::move(transport)),
      options_(options),
      process_(::getpid()),
      executor_(std::make_unique<OrderedExecutor>()) {}

HostCommunicator::~HostCommunicator() {
  if (::getpid() != process_) {  // a forked child has no such thread to end
    [[maybe_unused]] OrderedExecutor* const left_alone = executor_.release();
    return;
  }
  if (const std::size_t unfinished = executor_->unfinished(); unfinished > 0)
    transport_->abort(fmt::format(
        "rank {} has closed its communicator with {} operations unfinished", rank(), unfinished));
}

void HostCommunicator::check_process() const {
  if (::getpid() != process_)
    throw UsageError(fmt::format(
        "process {} was forked from rank {} (process {}) and may not use its communicator",
        ::getpid(), rank(), process_));
}

OrderedExecutor::Task HostCommunicator::guarded(OrderedExecutor::Task task) {
  check_process();
  return [this, task = std::move(task)] {
    try {
      task();
    } catch (const RankLostError& error) {
      transport_->abort(error.what());
      throw;
    } catch (const std::exception& error) {
      transport_->abort(fmt::format("rank {} failed in an operation: {}", rank(), error.what()));
      throw;
    }
  };
}

Work HostCommunicator::start(Operation operation) {
  return executor_->start(guarded([this, operation] { carry_out(operation); }));
}

void HostCommunicator::run(Operation operation) {
  executor_->run(guarded([this, operation] { carry_out(operation); }));
}

std::shared_ptr<std::byte> HostCommunicator::allocate(std::size_t bytes) {
  std::shared_ptr<std::byte> memory;
  Operation operation;
  operation.collective = Collective::allocate;
  operation.count = bytes;
  executor_->run(guarded([&] {
    transport_->begin(operation, options_.timeout);
    memory = transport_->allocate(bytes);
    transport_->end();
  }));
  return memory;
}

void HostCommunicator::abort(const std::string& reason) {
  transport_->abort(reason);
}

void HostCommunicator::carry_out(Operation operation) {
  if (operation.collective == Collective::send || operation.collective == Collective::receive)
    return carry_out_message(operation);
  operation.algorithm = options_.algorithms.choose(operation.collective, operation.bytes());
  if (transport_->peer_memory() == nullptr && set_of(operation.algorithm).needs_peer_memory)
    operation.algorithm = Algorithm::ring;
  transport_->begin(operation, options_.timeout);
  set_of(operation.algorithm).carry_out(*transport_, operation);
  transport_->end();
}

void HostCommunicator::carry_out_message(const Operation& operation) {
  transport_->begin_message(operation, options_.timeout);
  MessageHeader header{fingerprint_of(operation)};
  if (operation.collective == Collective::send) {
    for (const Outgoing& part : {Outgoing{operation.peer, &header, sizeof header},
                                 Outgoing{operation.peer, operation.send, operation.bytes()}})
      transport_->exchange({&part, 1}, {}, Lane::message);
  } else {
    const Incoming first{operation.peer, &header, sizeof header};
    transport_->exchange({}, {&first, 1}, Lane::message);
    check_message(operation, header.fingerprint, rank());
    const Incoming values{operation.peer, operation.receive, operation.bytes()};
    transport_->exchange({}, {&values, 1}, Lane::message);
  }
  transport_->end();
}

}  // namespace collar::comm
