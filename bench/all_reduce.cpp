// SPDX-License-Identifier: Apache-2.0
// How long does an all_reduce of f32 take, in place in shared memory and in memory of one's own?
// Start one process a rank: `collar launch -n 2 -- build/release/bench_all_reduce`; for the ring
// set COLLAR_ALGO=all_reduce=ring. busbw as nccl-tests define it: bytes / time × 2(n-1)/n.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "comm/create_communicator.hpp"

namespace {

using namespace collar;

/// The slowest rank's time of each iteration, in seconds, sorted.
std::vector<double> measure(comm::Communicator& group, std::span<float> values, int iterations) {
  std::vector<double> seconds;
  for (int i = -3; i < iterations; ++i) {  // three to warm up
    group.barrier();
    const auto begin = std::chrono::steady_clock::now();
    group.all_reduce(values, {comm::ReduceOp::sum, 1.0 / group.size()});
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (i >= 0) seconds.push_back(elapsed.count());
  }
  group.all_reduce(std::span(seconds), {comm::ReduceOp::max});
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void report(const comm::Communicator& group, const std::string& what, std::size_t bytes,
            const std::vector<double>& seconds) {
  if (group.rank() != 0) return;
  const double n = group.size();
  const auto busbw = [&](double t) {
    return static_cast<double>(bytes) / t * 2 * (n - 1) / n / 1e9;
  };
  const double median = seconds[seconds.size() / 2];
  fmt::print("{:>12} {:<16} {:>12.1f} {:>12.1f} {:>10.2f} {:>10.2f}\n", bytes, what,
             seconds.front() * 1e6, median * 1e6, busbw(seconds.front()), busbw(median));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of all_reduce over the ranks of this job");
  std::vector<std::size_t> sizes = {8, 1024, 64 << 10, 1 << 20, 25 << 20, 100 << 20};
  int iterations = 20;
  app.add_option("--bytes", sizes, "Sizes to measure");
  app.add_option("--iterations", iterations, "Measured calls of each")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const auto environment = comm::Environment::from_process();
  const auto options = comm::CommunicatorOptions::from_process();
  const auto group = comm::create_communicator(environment, options);
  if (group->rank() == 0)
    fmt::print("# {} ranks, f32, sum × 1/n, in place\n{:>12} {:<16} {:>12} {:>12} {:>10} {:>10}\n",
               group->size(), "bytes", "algorithm", "best us", "median us", "busbw GB/s", "median");
  for (const std::size_t bytes : sizes) {
    const std::size_t count = bytes / sizeof(float);
    const std::shared_ptr<std::byte> memory = group->allocate(bytes);
    const std::span<float> shared(reinterpret_cast<float*>(memory.get()), count);
    std::vector<float> own(count);
    const std::string algorithm(
        name_of(options.host.algorithms.choose(comm::Collective::all_reduce, bytes)));
    report(*group, algorithm + ", shared", bytes, measure(*group, shared, iterations));
    report(*group, algorithm + ", own", bytes, measure(*group, own, iterations));
  }
}
