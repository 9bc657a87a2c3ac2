// SPDX-License-Identifier: Apache-2.0
// Gradients summed over processes and virtual ranks: the same bits however the logical ranks are
// divided, whatever the buckets.
#include "comm/gradient_buckets.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "comm/verify.hpp"
#include "engine/ops/pointwise.hpp"
#include "engine/ops/reduce.hpp"
#include "kernels/core/error.hpp"
#include "tests/comm/support/serial_reduction.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/threads_as_ranks.hpp"

using namespace collar;
using comm::Communicator;
using comm::GradientBuckets;
using test::expect;

namespace {

const std::vector<Shape> kShapes = {{3}, {64, 5}, {1}, {7, 11, 3}, {130}, {2, 2}};

std::vector<NamedTensor> make_parameters(test::OnCpu& cpu) {
  std::vector<NamedTensor> parameters;
  for (std::size_t i = 0; i < kShapes.size(); ++i)
    parameters.push_back({fmt::format("p{}", i), cpu.leaf(cpu.random(kShapes[i], i))});
  return parameters;
}

/// The data of one micro-batch: a factor for each element of a parameter, which is the gradient.
Tensor factors(test::OnCpu& cpu, const Tensor& parameter, int logical_rank, int micro,
               std::size_t i) {
  return cpu.random(parameter.shape(), 1000 + i + 10 * static_cast<std::size_t>(micro) +
                                           100 * static_cast<std::size_t>(logical_rank));
}

Tensor loss_of(test::OnCpu& cpu, std::vector<NamedTensor>& parameters, int logical_rank, int micro,
               std::size_t unused) {
  Tensor loss;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i == unused) continue;
    const Tensor& p = parameters[i].tensor;
    const Tensor term = sum(mul(p, factors(cpu, p, logical_rank, micro, i)));
    loss = loss.defined() ? add(loss, term) : term;
  }
  return loss;
}

constexpr int kMicroBatches = 2;
constexpr std::size_t kNoneUnused = 99;

/// One step on `size` threads with `virtual_ranks` each; all gradients of rank 0, flat.
std::vector<float> gradients_of_step(int size, int virtual_ranks, std::size_t bucket_bytes,
                                     const std::string& algorithm = "direct",
                                     std::size_t unused = kNoneUnused) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
  comm::HostOptions options;
  options.algorithms = comm::AlgorithmTable("all_reduce=" + algorithm);
  test::threads_as_ranks(
      size,
      [&](Communicator& group) {
        test::OnCpu cpu(1);
        std::vector<NamedTensor> parameters = make_parameters(cpu);
        GradientBuckets buckets(parameters, group, {bucket_bytes, bucket_bytes, virtual_ranks});
        for (int step = 0; step < 2; ++step) {  // the second shows what the first leaves behind
          for (NamedTensor& p : parameters) p.tensor.zero_grad();
          for (int v = 0; v < virtual_ranks; ++v)
            for (int micro = 0; micro < kMicroBatches; ++micro) {
              expect(buckets.virtual_rank() == v, "the next virtual rank");
              const bool last = micro == kMicroBatches - 1;
              const bool complete = buckets.backward(
                  loss_of(cpu, parameters, group.rank() * virtual_ranks + v, micro, unused), last);
              expect(complete == (last && v == virtual_ranks - 1), "the end of the step is known");
            }
          buckets.finish();
        }
        std::vector<float>& mine = results[static_cast<std::size_t>(group.rank())];
        for (const NamedTensor& p : parameters) {
          const std::vector<float> values = p.tensor.grad().to_vector<float>();
          mine.insert(mine.end(), values.begin(), values.end());
        }
      },
      options);
  for (const auto& result : results) REQUIRE(result == results[0]);
  return results[0];
}

/// The same by hand: the tree over logical ranks of each rank's sum of micro-batches, times 1/L.
std::vector<float> serial_gradients(int logical_ranks) {
  test::OnCpu cpu(1);
  const std::vector<NamedTensor> parameters = make_parameters(cpu);
  std::vector<float> result;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::vector<float>> by_rank;
    for (int rank = 0; rank < logical_ranks; ++rank) {
      std::vector<float> total = factors(cpu, parameters[i].tensor, rank, 0, i).to_vector<float>();
      const auto second = factors(cpu, parameters[i].tensor, rank, 1, i).to_vector<float>();
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += second[k];
      by_rank.push_back(total);
    }
    for (std::size_t k = 0; k < by_rank[0].size(); ++k) {
      std::vector<float> values;
      for (const auto& rank : by_rank) values.push_back(rank[k]);
      result.push_back(test::serial_tree(comm::ReduceOp::sum, std::span<const float>(values)) *
                       static_cast<float>(1.0 / logical_ranks));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("gradients are the mean over logical ranks, in the tree order, whoever plays them") {
  const std::size_t bucket_bytes = GENERATE(64, 1024, 25 << 20);
  CAPTURE(bucket_bytes);
  const auto [logical, ways] =
      GENERATE(table<int, std::vector<std::pair<int, int>>>({{1, {{1, 1}}},
                                                             {2, {{2, 1}, {1, 2}}},
                                                             {3, {{3, 1}, {1, 3}}},
                                                             {4, {{4, 1}, {2, 2}, {1, 4}}},
                                                             {6, {{3, 2}, {1, 6}}},
                                                             {7, {{1, 7}}},
                                                             {8, {{2, 4}, {1, 8}}}}));
  const std::vector<float> expected = serial_gradients(logical);
  for (const auto& [size, virtual_ranks] : ways) {
    CAPTURE(logical, size, virtual_ranks);
    CHECK(gradients_of_step(size, virtual_ranks, bucket_bytes) == expected);
  }
}

TEST_CASE("on two ranks the ring gives the same bits as the tree") {
  CHECK(gradients_of_step(2, 1, 1024, "ring") == serial_gradients(2));
}

TEST_CASE("a parameter that no loss touches contributes zeros and holds nobody up") {
  const std::size_t unused = 3;
  const std::vector<float> with_zeros = gradients_of_step(2, 2, 64, "direct", unused);
  std::vector<float> expected = serial_gradients(4);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < unused; ++i) begin += static_cast<std::size_t>(kShapes[i].numel());
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), kShapes[unused].numel(), 0.0f);
  CHECK(with_zeros == expected);
}

TEST_CASE("gradients are views of one arena, which is reduced in place") {
  test::threads_as_ranks(2, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    GradientBuckets buckets(parameters, group, {1024, 1024, 1});
    buckets.backward(loss_of(cpu, parameters, group.rank(), 0, kNoneUnused));
    for (std::size_t i = 0; i < buckets.plan().buckets.size(); ++i) {
      buckets.wait_bucket(i);
      for (const std::size_t p : buckets.plan().buckets[i].parameters) {
        const float* const base = buckets.arena().data<float>();
        const Tensor gradient = parameters[p].tensor.grad();
        expect(gradient.data<float>() == base + buckets.plan().offsets[p], "a view of the arena");
      }
    }
    buckets.finish();
  });
}

TEST_CASE("models that differ between ranks are refused, and the parameter is named") {
  const auto messages = test::messages_of_ranks(3, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    if (group.rank() == 2) parameters[4].tensor = cpu.leaf(cpu.random({131}, 4));
    const GradientBuckets buckets(parameters, group);
  });
  for (const std::string& message : messages)
    CHECK(message ==
          "trainable parameters: ranks differ: rank 2 has 8 entries, rank 0 8; entry 4 is p4 (f32 "
          "[131]) on rank 2, but p4 (f32 [130]) on rank 0");
}

TEST_CASE("a gradient left from the last step is not lost without a word") {
  test::threads_as_ranks(1, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    GradientBuckets buckets(parameters, group, {1024, 1024, 2});
    const auto pass = [&] { return buckets.backward(loss_of(cpu, parameters, 0, 0, kNoneUnused)); };
    expect(!pass() && pass(), "two virtual ranks make a step");
    try {
      pass();
    } catch (const UsageError& error) {
      expect(std::string(error.what()).find("gradient of p0 was not cleared") != std::string::npos,
             error.what());
      return;
    }
    expect(false, "a UsageError");
  });
}

TEST_CASE("broadcast_tensors gives all ranks the root's values and checks them") {
  test::threads_as_ranks(3, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    const std::vector<float> original = parameters[1].tensor.to_vector<float>();
    if (group.rank() != 1)
      for (NamedTensor& p : parameters) p.tensor.copy_from(cpu.random(p.tensor.shape(), 77));
    comm::broadcast_tensors(group, parameters, 1);
    expect(parameters[1].tensor.to_vector<float>() == original, "the values of rank 1");
  });
  const auto messages = test::messages_of_ranks(2, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    if (group.rank() == 1) parameters.pop_back();
    comm::broadcast_tensors(group, parameters);
  });
  CHECK(messages[0] == messages[1]);
  CHECK(
      messages[0].find("rank 1 has 5 entries, rank 0 6; entry 5 is nothing after its 5 entries") !=
      std::string::npos);
}

TEST_CASE("values that drift apart are found by their checksum") {
  const auto messages = test::messages_of_ranks(3, [](Communicator& group) {
    test::OnCpu cpu(1);
    std::vector<NamedTensor> parameters = make_parameters(cpu);
    if (group.rank() == 2) parameters[3].tensor.data<float>()[5] += 1e-7f;
    comm::verify_equal(group, "parameters after step 100", comm::claims_of(parameters, true));
  });
  for (const std::string& message : messages) {
    CHECK(message == messages[0]);
    CHECK(message.find("parameters after step 100: ranks differ: rank 2") == 0);
    CHECK(message.find("p3 (f32 [7, 11, 3], checksum") != std::string::npos);
  }
}
