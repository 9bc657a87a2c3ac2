// SPDX-License-Identifier: Apache-2.0
// One rank of a job for the tests of processes: comm_rank_program SCENARIO [RANK [STEP]], or
// comm_rank_program collectives ALGORITHM. Prints "ok", or the error that a call threw and when.
// The scenarios say what rank RANK does in step STEP of a loop of collectives.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "comm/create_communicator.hpp"
#include "kernels/core/error.hpp"
#include "tests/comm/support/collective_checks.hpp"

namespace {

using namespace collar;
using comm::Communicator;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// All collectives in turn, whole numbers in f32, so that any order of addition gives the same.
void exercise(Communicator& group, std::span<float> values) {
  const auto n = static_cast<float>(group.size());
  const auto fill = [&] {
    for (float& v : values) v = static_cast<float>(group.rank() + 1);
  };
  const auto check = [&](float expected, const char* what) {
    for (const float v : values)
      if (v != expected)
        throw std::runtime_error(fmt::format("{}: {} is not {}", what, v, expected));
  };
  fill();
  group.all_reduce(values);
  check(n * (n + 1) / 2, "all_reduce");
  fill();
  group.all_reduce(values, {comm::ReduceOp::max, 0.5});
  check(n / 2, "maximum");
  fill();
  group.broadcast(values, group.size() - 1);
  check(n, "broadcast");
  std::vector<float> all(values.size() * static_cast<std::size_t>(group.size()));
  fill();
  group.all_gather(values, std::span(all));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != static_cast<float>(i / values.size() + 1)) throw std::runtime_error("all_gather");
  group.reduce_scatter(std::span(all), values);
  check(n * static_cast<float>(group.rank() + 1), "reduce_scatter");
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  fill();
  if (group.size() > 1 && group.rank() == 0) {  // once round
    group.send(values, next);
    group.receive(values, previous);
  } else if (group.size() > 1) {
    group.receive(values, previous);
    group.send(values, next);
  }
  check(1, "passed round");
  group.barrier();
}

void sums(Communicator& group) {
  std::vector<float> own(300'007);
  const std::shared_ptr<std::byte> shared = group.allocate(own.size() * sizeof(float));
  auto* const in_arena = reinterpret_cast<float*>(shared.get());
  for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, own.size()}) {
    exercise(group, std::span(own.data(), count));
    exercise(group, std::span(in_arena, count));
  }
}

/// A child of fork is told that it has no part in the group, and does the group no harm.
void fork_and_go_on(std::unique_ptr<Communicator>& group) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      group->barrier();
      std::_Exit(1);
    } catch (const UsageError&) {
      group.reset();
      std::_Exit(0);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the forked child was not refused");
  sums(*group);
}

struct Fault {
  std::string kind;
  int rank = 0;
  int step = 0;
};

void act(const Fault& fault, Communicator& group, std::span<float> values) {
  say(fmt::format("fault at {:.3f}", now()));
  if (fault.kind == "die") ::raise(SIGKILL);
  if (fault.kind == "stop") ::raise(SIGSTOP);
  if (fault.kind == "exit") std::exit(0);  // no destructor of the communicator runs
  if (fault.kind == "throw") throw std::runtime_error("this rank has a problem of its own");
  if (fault.kind == "mismatch") group.broadcast(values, 0);
  if (fault.kind == "abort") group.abort("rank 1 found a bad picture");
}

void loop_with_fault(Communicator& group, const Fault& fault, bool in_arena) {
  const std::size_t count = 250'000;
  std::vector<float> own(in_arena ? 0 : count);
  const auto shared = in_arena ? group.allocate(count * sizeof(float)) : nullptr;
  const std::span<float> values(in_arena ? reinterpret_cast<float*>(shared.get()) : own.data(),
                                count);
  const int steps = fault.kind == "stop" ? 40 : 1000;
  for (int step = 0; step < steps; ++step) {
    if (fault.rank == group.rank() && fault.step == step) act(fault, group, values);
    group.all_reduce(values);
    const comm::Work work = group.all_reduce_async(values.first(1000));
    work.wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "sums";
  const std::size_t descriptors = open_descriptors();
  try {
    const auto environment = comm::Environment::from_process();
    auto group = comm::create_communicator(environment);
    if (scenario == "sums" || scenario == "again")
      sums(*group);
    else if (scenario == "collectives")
      for (const bool shared : {false, true}) test::check_collectives(*group, argv[2], shared);
    else if (scenario == "fork")
      fork_and_go_on(group);
    else
      loop_with_fault(
          *group, {scenario, argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? std::atoi(argv[3]) : 0},
          argc > 4 && std::string(argv[4]) == "arena");
    group.reset();
    if (scenario == "again") {  // a second group of the same job
      sums(*comm::create_communicator(environment));
    }
    if (open_descriptors() != descriptors)
      throw std::runtime_error(fmt::format("{} descriptors were open at the start, {} at the end",
                                           descriptors, open_descriptors()));
    say("ok");
    return 0;
  } catch (const RankLostError& error) {
    say(fmt::format("lost at {:.3f}: {}", now(), error.what()));
    return 6;
  } catch (const UsageError& error) {
    say(fmt::format("usage: {}", error.what()));
    return 2;
  } catch (const std::exception& error) {
    say(fmt::format("error: {}", error.what()));
    return 7;
  }
}
