// SPDX-License-Identifier: Apache-2.0
#include "comm/gradient_buckets.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/state.hpp"
#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/threads_as_ranks.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::comm::Communicator;
using collar::comm::GradientBucketOptions;
using collar::comm::GradientBuckets;
using collar::test::expect;
using collar::test::OnCpu;
using collar::test::threads_as_ranks;
using Pass = GradientBuckets::Pass;

namespace {

const std::vector<Shape> kShapes{{7, 3}, {130}, {}, {64, 5}, {1000}, {3}};
constexpr int kMicroBatches = 2;

std::vector<NamedTensor> make_parameters(OnCpu& cpu) {
  std::vector<NamedTensor> parameters;
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    parameters.push_back({"p" + std::to_string(i), cpu.leaf(cpu.random(kShapes[i], i))});
  }
  return parameters;
}

// The gradient that one micro-batch of one logical rank gives a parameter.
Tensor gradient_of(OnCpu& cpu, std::size_t parameter, int rank, int micro) {
  return cpu.random(kShapes[parameter], 1000 + 100 * static_cast<unsigned>(rank) +
                                            10 * static_cast<unsigned>(micro) + parameter);
}

void backward(OnCpu& cpu, const std::vector<NamedTensor>& parameters, int rank, int micro) {
  Tensor loss = cpu.tensor({0}, {});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    loss = add(loss, sum(mul(parameters[i].tensor, gradient_of(cpu, i, rank, micro))));
  }
  loss.backward();
}

std::vector<float> all_gradients(const std::vector<NamedTensor>& parameters) {
  std::vector<float> all;
  for (const NamedTensor& parameter : parameters) {
    const std::vector<float> gradient = parameter.tensor.grad().to_vector<float>();
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

// One step of n processes that play v ranks each; the gradients that rank 0 ends up with.
std::vector<float> gradients_of_step(int n, int v, std::size_t bucket_bytes) {
  std::vector<float> result;
  std::mutex mutex;
  threads_as_ranks(n, [&](Communicator& communicator) {
    OnCpu cpu(1);
    const std::vector<NamedTensor> parameters = make_parameters(cpu);
    GradientBucketOptions options;
    options.first_bucket_bytes = bucket_bytes / 4;
    options.bucket_bytes = bucket_bytes;
    options.virtual_ranks = v;
    GradientBuckets buckets(parameters, communicator, options);
    for (int step = 0; step < 2; ++step) {  // the second one must not see anything of the first
      for (int k = 0; k < v; ++k) {
        for (int micro = 0; micro < kMicroBatches; ++micro) {
          const bool last = micro + 1 == kMicroBatches;
          buckets.begin(!last       ? Pass::accumulate
                        : k + 1 < v ? Pass::end_of_rank
                                    : Pass::end_of_step);
          backward(cpu, parameters, communicator.rank() * v + k, micro + 10 * step);
          buckets.end();
        }
      }
      buckets.finish();
      if (step == 1 && communicator.rank() == 0) {
        const std::lock_guard lock(mutex);
        result = all_gradients(parameters);
      }
      buckets.reset();
    }
  });
  return result;
}

// The sum over ranks [begin, end) in the tree of logical ranks.
std::vector<float> tree_sum(const std::vector<std::vector<float>>& ranks, std::size_t begin,
                            std::size_t end) {
  if (end - begin == 1) return ranks[begin];
  std::size_t half = 1;
  while (2 * half < end - begin) half *= 2;
  std::vector<float> left = tree_sum(ranks, begin, begin + half);
  const std::vector<float> right = tree_sum(ranks, begin + half, end);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

std::vector<float> expected_gradients(int logical_ranks) {
  OnCpu cpu(1);
  std::vector<std::vector<float>> of_ranks;
  for (int rank = 0; rank < logical_ranks; ++rank) {
    const std::vector<NamedTensor> parameters = make_parameters(cpu);
    for (int micro = 0; micro < kMicroBatches; ++micro) backward(cpu, parameters, rank, micro + 10);
    of_ranks.push_back(all_gradients(parameters));
  }
  std::vector<float> sum = tree_sum(of_ranks, 0, of_ranks.size());
  const float factor = static_cast<float>(1.0 / logical_ranks);
  for (float& value : sum) value *= factor;
  return sum;
}

}  // namespace

TEST_CASE(
    "Gradients are the mean over logical ranks, to the bit, however they are spread over "
    "processes") {
  struct Split {
    int processes;
    int virtual_ranks;
  };
  const std::vector<Split> splits{{1, 1}, {2, 1}, {1, 2}, {3, 1}, {1, 3}, {4, 1}, {2, 2},
                                  {1, 4}, {1, 5}, {3, 2}, {1, 6}, {1, 7}, {2, 4}, {1, 8}};
  for (const Split& split : splits) {
    const std::vector<float> expected = expected_gradients(split.processes * split.virtual_ranks);
    for (const std::size_t bucket_bytes : {std::size_t{1000}, std::size_t{25} << 20}) {
      INFO(split.processes << " processes of " << split.virtual_ranks << ", buckets of "
                           << bucket_bytes);
      CHECK(gradients_of_step(split.processes, split.virtual_ranks, bucket_bytes) == expected);
    }
  }
}

TEST_CASE("Buckets are launched in their order while the backward pass runs") {
  threads_as_ranks(2, [](Communicator& communicator) {
    OnCpu cpu(1);
    const std::vector<NamedTensor> parameters = make_parameters(cpu);
    GradientBucketOptions options;
    options.first_bucket_bytes = 16;
    options.bucket_bytes = 16;
    GradientBuckets buckets(parameters, communicator, options);
    buckets.begin(Pass::end_of_step);
    backward(cpu, parameters, communicator.rank(), 0);
    buckets.end();
    buckets.finish();
    expect(buckets.plan().buckets.size() == kShapes.size(), "a bucket a parameter");
    expect(buckets.launched_early() == kShapes.size(), "all launched from hooks");
  });
}

TEST_CASE("A parameter that was not used in a step counts as zero on that rank") {
  threads_as_ranks(2, [](Communicator& communicator) {
    OnCpu cpu(1);
    const std::vector<NamedTensor> parameters{{"used", cpu.leaf(cpu.tensor({1, 2}, {2}))},
                                              {"on_rank_0_only", cpu.leaf(cpu.tensor({3}, {1}))}};
    GradientBuckets buckets(parameters, communicator);
    for (int step = 0; step < 2; ++step) {
      buckets.begin(Pass::end_of_step);
      Tensor loss = sum(parameters[0].tensor);
      if (communicator.rank() == 0) loss = add(loss, sum(mul(parameters[1].tensor, 8.0)));
      loss.backward();
      buckets.end();
      buckets.finish();
      expect(parameters[0].tensor.grad().to_vector<float>() == std::vector<float>{1, 1},
             "mean of ones");
      expect(parameters[1].tensor.grad().item() == 4.0, "half of 8");
      buckets.reset();
    }
  });
}

TEST_CASE("Ranks with different models are told which parameter differs") {
  const auto messages = test::messages_of_ranks(3, [](Communicator& communicator) {
    OnCpu cpu(1);
    const std::int64_t width = communicator.rank() == 2 ? 5 : 4;
    std::vector<NamedTensor> tensors{{"conv1.weight", cpu.random({width}, 1)},
                                     {"fc.bias", cpu.random({3}, 2)}};
    comm::broadcast_tensors(communicator, "parameters", tensors);
  });
  for (const std::string& message : messages) {
    CHECK_THAT(message, Contains("conv1.weight is f32 [4] on rank 0 and f32 [5] on rank 2"));
  }
}

TEST_CASE("Ranks whose buckets differ are all told what differs first, and where") {
  const std::vector<std::pair<std::string, Shape>> kTensors{
      {"conv.weight", {8, 3}}, {"fc.weight", {5, 8}}, {"fc.bias", {5}}};
  struct Model {
    std::vector<std::pair<std::string, Shape>> tensors;
    GradientBucketOptions options;
  };
  struct Difference {
    std::string what;
    std::function<void(Model&)> on_rank_1;
    std::string message;
  };
  const std::vector<Difference> differences{
      {"other buckets", [](Model& m) { m.options.bucket_bytes = 1000; },
       "the limit of a bucket is 26214400 bytes on rank 0 and 1000 bytes on rank 1"},
      {"another first bucket", [](Model& m) { m.options.first_bucket_bytes = 64; },
       "the limit of the first bucket is 1048576 bytes on rank 0 and 64 bytes on rank 1"},
      {"other virtual ranks", [](Model& m) { m.options.virtual_ranks = 2; },
       "the number of virtual ranks is 1 on rank 0 and 2 on rank 1"},
      {"a frozen parameter", [](Model& m) { m.tensors.erase(m.tensors.begin() + 1); },
       "where rank 0 has fc.weight, rank 1 has conv.weight"},
      {"another name", [](Model& m) { m.tensors[1].first = "head.weight"; },
       "where rank 0 has fc.weight, rank 1 has head.weight"},
      {"a tensor more",
       [](Model& m) {
         m.tensors.insert(m.tensors.begin(), {"stem", {4}});
       },
       "where rank 0 has bucket 0, rank 1 has stem"},
      {"another shape of the same size",
       [](Model& m) {
         m.tensors[0].second = {3, 8};
       },
       "conv.weight is f32 [8, 3] at element 64 on rank 0 and f32 [3, 8] at element 64 on rank 1"},
      {"another size",
       [](Model& m) {
         m.tensors[1].second = {2, 8};
       },
       "fc.weight is f32 [5, 8] at element 16 on rank 0 and f32 [2, 8] at element 16 on rank 1"}};
  for (const Difference& difference : differences) {
    INFO(difference.what);
    const auto messages = test::messages_of_ranks(2, [&](Communicator& communicator) {
      OnCpu cpu(1);
      Model model{kTensors, {}};
      if (communicator.rank() == 1) difference.on_rank_1(model);
      std::vector<NamedTensor> parameters;
      for (const auto& [name, shape] : model.tensors)
        parameters.push_back({name, cpu.leaf(cpu.random(shape, 1))});
      GradientBuckets buckets(parameters, communicator, model.options);
    });
    for (const std::string& message : messages)
      CHECK_THAT(message, Contains("do not agree on the gradient buckets: " + difference.message));
  }
}

TEST_CASE("Buckets that could not be made leave no hook behind") {
  threads_as_ranks(1, [](Communicator& communicator) {
    OnCpu cpu(1);
    const std::vector<NamedTensor> parameters{
        {"good", cpu.leaf(cpu.tensor({1, 2}, {2}))},
        {"bf16", cast(cpu.tensor({1}, {1}), DType::bf16)}};  // has no place among f32
    try {
      const GradientBuckets buckets(parameters, communicator);
      expect(false, "a ShapeError");
    } catch (const ShapeError&) {
    }
    for (const NamedTensor& parameter : parameters)
      expect(!parameter.tensor.state()->grad_hook, "no hook at " + parameter.name);
  });
}

TEST_CASE("All ranks get rank 0's values") {
  threads_as_ranks(3, [](Communicator& communicator) {
    OnCpu cpu(1);
    std::vector<NamedTensor> tensors{
        {"weight", cpu.random({100}, static_cast<std::uint64_t>(communicator.rank()))}};
    comm::broadcast_tensors(communicator, "parameters", tensors);
    expect(tensors[0].tensor.to_vector<float>() == cpu.random({100}, 0).to_vector<float>(),
           "rank 0's values");
  });
}

TEST_CASE("Without trainable parameters there is nothing to reduce, and it says so") {
  const auto messages = test::messages_of_ranks(
      1, [](Communicator& communicator) { GradientBuckets buckets({}, communicator); });
  CHECK_THAT(messages[0], Contains("no parameter requires a gradient"));
}
