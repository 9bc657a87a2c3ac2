// SPDX-License-Identifier: Apache-2.0
// Checks of every collective of a group against serial reductions, bit for bit: each rank calls
// them alike, be it a thread or a process. What is wrong is thrown (expect).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives/partition.hpp"
#include "comm/communicator.hpp"
#include "tests/comm/support/serial_reduction.hpp"
#include "tests/support/threads_as_ranks.hpp"

namespace collar::test {

using comm::Communicator;
using comm::ReduceOp;

inline constexpr std::size_t kMaxRanks = 5;
inline constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};

/// The text of an AlgorithmTable.
inline std::string algorithm_for_all(const std::string& name) {
  std::string table;
  for (const char* collective :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"})
    table += fmt::format("{}{}={}", table.empty() ? "" : ",", collective, name);
  return table;
}

inline std::vector<std::size_t> awkward_sizes(int ranks, bool with_large) {
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
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = sample<T>(rank, i, with_specials);
}

/// Element i of the reduction over all ranks, if it belongs to part `part` of a ring.
template <typename T>
T expected(const Communicator& group, const std::string& algorithm, ReduceOp op, double scale,
           std::size_t i, std::size_t part) {
  std::array<T, kMaxRanks> samples;
  const std::span<const T> values(samples.data(), static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank)
    samples[static_cast<std::size_t>(rank)] =
        sample<T>(rank, i, op == ReduceOp::min || op == ReduceOp::max);
  const auto result = algorithm == "ring" ? serial_ring(op, values, part) : serial_tree(op, values);
  if (scale == 1) return static_cast<T>(result);
  return static_cast<T>(result * static_cast<decltype(result)>(scale));
}

inline std::size_t part_holding(std::size_t i, std::size_t count, std::size_t n,
                                std::size_t per_line) {
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
    expect(same_value(got, want), fmt::format("{}: {}: element {} is {}, got {}", what, collective,
                                              i, as_double(want), as_double(got)));
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
          same_value(all[i], sample<T>(static_cast<int>(i / count), i % count, true)),
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
      expect(same_value(part[i], sample<T>(root, i, true)),
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

/// Every collective with every type, operation and awkward size, out of place and in place.
inline void check_collectives(Communicator& group, const std::string& algorithm, bool shared) {
  Place place(group, shared);
  check_type<float>(group, algorithm, place);
  check_type<double>(group, algorithm, place);
  check_type<bfloat16>(group, algorithm, place);
  check_type<float16>(group, algorithm, place);
  check_type<std::uint8_t>(group, algorithm, place);
  check_type<std::int8_t>(group, algorithm, place);
  check_type<std::int32_t>(group, algorithm, place);
  check_type<std::int64_t>(group, algorithm, place);
}

}  // namespace collar::test
