// SPDX-License-Identifier: Apache-2.0
// Every collective, algorithm, type, operation and awkward size on 1 to 5 ranks, against serial
// reductions bit for bit.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "kernels/core/error.hpp"
#include "tests/comm/support/collective_checks.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/threads_as_ranks.hpp"

using namespace collar;
using comm::Communicator;
using comm::ConstElements;
using comm::Elements;
using comm::ReduceOp;
using test::check_copies;
using test::check_reductions;
using test::expect;
using test::kOps;
using test::Place;

namespace {

comm::HostOptions with_algorithm(const std::string& name) {
  comm::HostOptions options;
  options.algorithms = comm::AlgorithmTable(test::algorithm_for_all(name));
  return options;
}

}  // namespace

TEST_CASE("every collective gives the bits of a serial reduction") {
  const std::string algorithm = GENERATE("direct", "ring");
  const bool shared = GENERATE(false, true);
  const int n = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(algorithm, shared, n);
  test::threads_as_ranks(
      n, [&](Communicator& group) { test::check_collectives(group, algorithm, shared); },
      with_algorithm(algorithm));
}

TEST_CASE("large buffers travel in pieces and give the same bits") {
  const std::string algorithm = GENERATE("direct", "ring");
  const bool shared = GENERATE(false, true);
  const int n = GENERATE(2, 3);
  CAPTURE(algorithm, shared, n);
  test::threads_as_ranks(
      n,
      [&](Communicator& group) {
        Place place(group, shared);
        check_reductions<float>(group, algorithm, ReduceOp::sum, 0.5, 100'003, place);
        check_reductions<bfloat16>(group, algorithm, ReduceOp::sum, 1, 200'001, place);
        check_copies<float>(group, 100'003, place);
      },
      with_algorithm(algorithm));
}

TEST_CASE("a random mixture of collectives gives the bits of serial reductions") {
  const int steps = test::rounds(60, 20'000);
  const auto seed = static_cast<unsigned>(test::full_tests() ? std::random_device()() : 1);
  CAPTURE(seed);
  comm::HostOptions options;  // ring and direct take turns by size
  options.algorithms = comm::AlgorithmTable(
      "all_reduce=ring:0-100;direct:100-2000;ring:2K-9K,reduce=ring:64-1K,reduce_scatter=ring:0-"
      "500,"
      "all_gather=ring:100-max,broadcast=ring:1K-max");
  test::threads_as_ranks(
      4,
      [&](Communicator& group) {
        std::mt19937 random(seed);  // the same on all ranks
        Place own(group, false);
        Place shared(group, true);
        for (int step = 0; step < steps; ++step) {
          Place& place = random() % 2 == 0 ? own : shared;
          const std::size_t count = random() % (1u << (random() % 12));
          const ReduceOp op = kOps[random() % 4];
          switch (random() % 4) {  // integers: every order of reduction gives the same
            case 0:
              check_reductions<std::int32_t>(group, "direct", op, 1, count, place);
              break;
            case 1:
              check_reductions<std::uint8_t>(group, "direct", op, 1, count, place);
              break;
            case 2:
              check_copies<bfloat16>(group, count, place);
              break;
            default:
              check_copies<double>(group, count, place);
              break;
          }
          const comm::Work work = group.broadcast_async(place.at<float>(0, count), 3);
          group.barrier();
          work.wait();
        }
      },
      options);
}

TEST_CASE("the direct all_reduce adds in the tree order, not from left to right") {
  const float values[] = {1e8f, 1, -1e8f, 1};  // from left to right: 1
  test::threads_as_ranks(4, [&](Communicator& group) {
    std::vector<float> mine = {values[group.rank()]};
    group.all_reduce(std::span(mine));
    expect(mine[0] == 0, fmt::format("(1e8 + 1) + (-1e8 + 1) = 0 in f32, got {}", mine[0]));
  });
}

TEST_CASE("all ranks get the same bits") {
  const std::string algorithm = GENERATE("direct", "ring");
  test::threads_as_ranks(
      3,
      [&](Communicator& group) {
        std::vector<float> values(1001);
        test::fill(std::span(values), group.rank(), ReduceOp::sum);
        group.all_reduce(std::span(values));
        std::vector<float> of_rank_0 = values;
        group.broadcast(std::span(of_rank_0), 0);
        expect(values == of_rank_0, "equal to rank 0's result");
      },
      with_algorithm(algorithm));
}

TEST_CASE("send and receive carry messages in order, between and apart from collectives") {
  test::threads_as_ranks(3, [](Communicator& group) {
    const int next = (group.rank() + 1) % 3;
    const int previous = (group.rank() + 2) % 3;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
      std::vector<std::int32_t> out(count, group.rank());
      std::vector<std::int32_t> in(count, -1);
      group.send(std::span(out), next);
      group.barrier();
      group.receive(std::span(in), previous);
      for (const std::int32_t value : in) expect(value == previous, "the previous rank's value");
    }
    std::vector<double> large(300'000, group.rank());  // more than a mailbox holds
    if (group.rank() == 0) group.send(std::span(large), 1);
    if (group.rank() == 1) {
      group.receive(std::span(large), 0);
      expect(std::accumulate(large.begin(), large.end(), 0.0) == 0, "rank 0's zeros");
    }
  });
}

TEST_CASE("asynchronous operations run in order while the caller goes on") {
  test::threads_as_ranks(3, [](Communicator& group) {
    std::vector<std::vector<float>> buffers;
    std::vector<comm::Work> works;
    for (std::size_t i = 0; i < 50; ++i)
      buffers.emplace_back(i * 37, static_cast<float>(group.rank() + 1));
    for (auto& buffer : buffers) works.push_back(group.all_reduce_async(std::span(buffer)));
    std::vector<float> one = {1};
    group.all_reduce(std::span(one));  // queues behind them
    for (const comm::Work& work : works) expect(work.is_done(), "done before the call after it");
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      works[i].wait();
      for (const float value : buffers[i]) expect(value == 6, "1 + 2 + 3");
    }
    expect(one[0] == 3, "1 + 1 + 1");
  });
}

TEST_CASE("arguments that cannot be right are refused before anything is sent") {
  test::threads_as_ranks(2, [](Communicator& group) {
    std::vector<float> four(4);
    std::vector<float> three(3);
    std::vector<std::int32_t> numbers(4);
    const auto refused = [&](auto&& call, const std::string& word) {
      try {
        call();
      } catch (const UsageError& error) {
        expect(std::string(error.what()).find(word) != std::string::npos,
               fmt::format("'{}' in '{}'", word, error.what()));
        return;
      }
      expect(false, "a UsageError with " + word);
    };
    refused([&] { group.all_reduce(std::span(four), std::span(three)); }, "4 elements");
    refused([&] { group.all_reduce(Elements(nullptr, 3, DType::f32)); }, "null");
    refused([&] { group.all_reduce(std::span(numbers), {ReduceOp::sum, 0.5}); }, "floating");
    refused([&] { group.all_reduce(Elements(numbers.data(), 4, DType::boolean)); }, "boolean");
    refused([&] { group.reduce_scatter(std::span(three), std::span(three)); }, "reduce_scatter");
    refused([&] { group.broadcast(std::span(four), 2); }, "rank 2");
    refused([&] { group.send(std::span(four), group.rank()); }, "itself");
    auto* const odd = reinterpret_cast<std::byte*>(four.data()) + 1;
    refused([&] { group.all_reduce(Elements(odd, 2, DType::f32)); }, "aligned");
    group.barrier();
  });
}
