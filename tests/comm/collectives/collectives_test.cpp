// SPDX-License-Identifier: Apache-2.0
// Every collective, algorithm, type, operation and awkward size on 1 to 5 ranks, against serial
// reductions bit for bit.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "comm/collectives/partition.hpp"
#include "kernels/core/error.hpp"
#include "tests/comm/support/serial_reduction.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/threads_as_ranks.hpp"

using namespace collar;
using comm::Communicator;
using comm::ConstElements;
using comm::Elements;
using comm::ReduceOp;
using test::expect;

namespace {

constexpr std::size_t kMaxRanks = 5;
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};

comm::HostOptions with_algorithm(const std::string& name) {
  comm::HostOptions options;
  std::string table;
  for (const char* collective :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"})
    table += fmt::format("{}{}={}", table.empty() ? "" : ",", collective, name);
  options.algorithms = comm::AlgorithmTable(table);
  return options;
}

std::vector<std::size_t> awkward_sizes(int ranks, bool with_large) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> sizes = {0, 1, n - 1, n, n + 1, 17};
  if (with_large) sizes.push_back(1000);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Where a rank's buffers lie: in memory of its own, or in memory that all ranks share.
class Place {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  Place(Communicator& communicator, bool shared)
      : shared_(shared ? communicator.allocate(kBytes) : nullptr), own_(shared ? 0 : kBytes) {}

  /// Two disjoint stretches, the second for results.
  template <typename T>
  std::span<T> at(int half, std::size_t count) {
    std::byte* const base = shared_ ? shared_.get() : own_.data();
    return {reinterpret_cast<T*>(base + static_cast<std::size_t>(half) * (kBytes / 2)) + 1, count};
  }

 private:
  std::shared_ptr<std::byte> shared_;
  std::vector<std::byte> own_;
};

template <typename T>
void fill(std::span<T> values, int rank, ReduceOp op) {
  const bool with_specials = op == ReduceOp::min || op == ReduceOp::max;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = test::sample<T>(rank, i, with_specials);
}

/// Element i of the reduction over all ranks, if it belongs to part `part` of a ring.
template <typename T>
T expected(const Communicator& group, const std::string& algorithm, ReduceOp op, double scale,
           std::size_t i, std::size_t part) {
  std::array<T, kMaxRanks> samples;
  const std::span<const T> values(samples.data(), static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank)
    samples[static_cast<std::size_t>(rank)] =
        test::sample<T>(rank, i, op == ReduceOp::min || op == ReduceOp::max);
  const auto result =
      algorithm == "ring" ? test::serial_ring(op, values, part) : test::serial_tree(op, values);
  if (scale == 1) return static_cast<T>(result);
  return static_cast<T>(result * static_cast<decltype(result)>(scale));
}

std::size_t part_holding(std::size_t i, std::size_t count, std::size_t n, std::size_t per_line) {
  std::size_t part = 0;
  for (;; ++part) {
    const comm::Part range = comm::part_of(count, n, part, per_line);
    if (i >= range.begin && i < range.begin + range.count) return part;
  }
}

template <typename T>
void check_reductions(Communicator& group, const std::string& algorithm, ReduceOp op, double scale,
                      std::size_t count, Place& place) {
  const auto n = static_cast<std::size_t>(group.size());
  const std::string what = fmt::format("{} {} of {} × {} on {} ranks", algorithm, comm::name_of(op),
                                       count, name_of(dtype_of<T>), n);
  const auto check = [&](const char* collective, T got, std::size_t i, std::size_t part) {
    const T want = expected<T>(group, algorithm, op, scale, i, part);
    expect(test::same_value(got, want),
           fmt::format("{}: {}: element {} is {}, got {}", what, collective, i,
                       test::as_double(want), test::as_double(got)));
  };
  const std::size_t per_line = 64 / sizeof(T);
  const std::span<T> send = place.at<T>(0, count);
  const std::span<T> receive = place.at<T>(1, count);

  fill(send, group.rank(), op);
  group.all_reduce(send, receive, {op, scale});
  for (std::size_t i = 0; i < count; ++i)
    check("all_reduce", receive[i], i, part_holding(i, count, n, per_line));
  group.all_reduce(send, {op, scale});
  for (std::size_t i = 0; i < count; ++i)
    check("all_reduce in place", send[i], i, part_holding(i, count, n, per_line));

  for (int root : {0, group.size() - 1}) {
    fill(send, group.rank(), op);
    group.reduce(send, group.rank() == root ? receive : std::span<T>(), root, {op, scale});
    if (group.rank() == root)
      for (std::size_t i = 0; i < count; ++i)
        check("reduce", receive[i], i, part_holding(i, count, n, per_line));
  }

  const std::span<T> all = place.at<T>(0, n * count);
  const auto own = static_cast<std::size_t>(group.rank());
  fill(all, group.rank(), op);
  group.reduce_scatter(all, receive, {op, scale});
  for (std::size_t i = 0; i < count; ++i) check("reduce_scatter", receive[i], own * count + i, own);
  group.reduce_scatter(all, all.subspan(own * count, count), {op, scale});
  for (std::size_t i = 0; i < count; ++i)
    check("reduce_scatter in place", all[own * count + i], own * count + i, own);
}

template <typename T>
void check_copies(Communicator& group, std::size_t count, Place& place) {
  const auto n = static_cast<std::size_t>(group.size());
  const auto own = static_cast<std::size_t>(group.rank());
  const std::span<T> part = place.at<T>(0, count);
  const std::span<T> all = place.at<T>(1, n * count);
  const auto check_all = [&](const char* how) {
    for (std::size_t i = 0; i < n * count; ++i)
      expect(
          test::same_value(all[i], test::sample<T>(static_cast<int>(i / count), i % count, true)),
          fmt::format("all_gather {} of {} × {}: element {}", how, count, name_of(dtype_of<T>), i));
  };
  fill(part, group.rank(), ReduceOp::max);
  group.all_gather(part, all);
  check_all("out of place");
  std::fill(all.begin(), all.end(), T());
  std::copy(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(own * count));
  group.all_gather(all.subspan(own * count, count), all);
  check_all("in place");
  for (int root = 0; root < group.size(); ++root) {
    fill(part, group.rank(), ReduceOp::max);
    group.broadcast(part, root);
    for (std::size_t i = 0; i < count; ++i)
      expect(test::same_value(part[i], test::sample<T>(root, i, true)),
             fmt::format("broadcast of {} × {}: element {}", count, name_of(dtype_of<T>), i));
  }
}

template <typename T>
void check_type(Communicator& group, const std::string& algorithm, Place& place) {
  const double scale = is_floating(dtype_of<T>) ? 1.0 / 3 : 1;
  for (const std::size_t count : awkward_sizes(group.size(), sizeof(T) == 2 || sizeof(T) == 4)) {
    for (const ReduceOp op : kOps) {
      check_reductions<T>(group, algorithm, op, 1, count, place);
      check_reductions<T>(group, algorithm, op, scale, count, place);
    }
    check_copies<T>(group, count, place);
  }
}

}  // namespace

TEST_CASE("every collective gives the bits of a serial reduction") {
  const std::string algorithm = GENERATE("direct", "ring");
  const bool shared = GENERATE(false, true);
  const int n = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(algorithm, shared, n);
  test::threads_as_ranks(
      n,
      [&](Communicator& group) {
        Place place(group, shared);
        check_type<float>(group, algorithm, place);
        check_type<double>(group, algorithm, place);
        check_type<bfloat16>(group, algorithm, place);
        check_type<float16>(group, algorithm, place);
        check_type<std::uint8_t>(group, algorithm, place);
        check_type<std::int8_t>(group, algorithm, place);
        check_type<std::int32_t>(group, algorithm, place);
        check_type<std::int64_t>(group, algorithm, place);
      },
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
        fill(std::span(values), group.rank(), ReduceOp::sum);
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
