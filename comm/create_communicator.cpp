// SPDX-License-Identifier: Apache-2.0
#include "comm/create_communicator.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <future>
#include <optional>
#include <string_view>

#include "comm/rendezvous/store.hpp"
#include "comm/rendezvous/store_server.hpp"
#include "comm/transport/process_fabric.hpp"
#include "comm/transport/shared_memory_transport.hpp"
#include "comm/transport/thread_fabric.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

std::chrono::milliseconds seconds_from(const char* variable, std::chrono::milliseconds otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view view(text);
  double seconds = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), seconds);
  if (error != std::errc() || end != view.data() + view.size() || !(seconds > 0 && seconds < 1e8))
    throw UsageError(
        fmt::format("{}=\"{}\": expected a number of seconds above 0", variable, view));
  return std::chrono::milliseconds(static_cast<long long>(seconds * 1000) + 1);
}

/// Ranks of one host need no address that others can reach, whatever name the launcher gave.
Endpoint store_endpoint(const Environment& environment) {
  if (environment.single_host && !is_loopback(environment.store))
    return {"127.0.0.1", environment.store.port};
  return environment.store;
}

/// Meets the other ranks at the store, which is needed until the transport of all ranks stands.
std::unique_ptr<Transport> meet(const Environment& environment,
                                const CommunicatorOptions& options) {
  const Deadline deadline = Deadline::after(options.join_timeout);
  const Endpoint endpoint = store_endpoint(environment);
  std::optional<StoreServer> server;
  if (environment.rank == 0) server.emplace(endpoint, environment.job_token);
  Store store(endpoint, environment.job_token, deadline, environment.rank, environment.world_size);
  HostGroupOptions group;
  group.rank = environment.rank;
  group.size = environment.world_size;
  group.token = environment.job_token;
  return std::make_unique<SharedMemoryTransport>(join_host_group(store, group, deadline), deadline);
}

}  // namespace

CommunicatorOptions CommunicatorOptions::from_process() {
  CommunicatorOptions options;
  options.host.timeout = seconds_from("COLLAR_TIMEOUT", options.host.timeout);
  options.join_timeout = seconds_from("COLLAR_JOIN_TIMEOUT", options.join_timeout);
  if (const char* text = std::getenv("COLLAR_ALGO"); text != nullptr)
    options.host.algorithms = AlgorithmTable(text);
  return options;
}

std::unique_ptr<Communicator> create_communicator(const Environment& environment,
                                                  const CommunicatorOptions& options) {
  if (environment.world_size == 1)
    return std::move(create_thread_communicators(1, options.host).front());
  auto communicator = std::make_unique<HostCommunicator>(meet(environment, options), options.host);
  communicator->barrier();  // rank 0's store is closed now, and its address free for another group
  return communicator;
}

std::vector<std::unique_ptr<Communicator>> create_thread_communicators(int size,
                                                                       const HostOptions& options) {
  std::vector<std::unique_ptr<Fabric>> fabrics = make_thread_fabrics(size);
  // Each constructor waits for the others', so each has a thread.
  std::vector<std::future<std::unique_ptr<Transport>>> transports;
  for (std::unique_ptr<Fabric>& fabric : fabrics)
    transports.push_back(std::async(std::launch::async, [&fabric, &options] {
      return std::unique_ptr<Transport>(std::make_unique<SharedMemoryTransport>(
          std::move(fabric), Deadline::after(options.timeout)));
    }));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (auto& transport : transports)
    communicators.push_back(std::make_unique<HostCommunicator>(transport.get(), options));
  return communicators;
}

}  // namespace collar::comm
