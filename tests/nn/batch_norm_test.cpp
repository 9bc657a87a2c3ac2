// SPDX-License-Identifier: Apache-2.0
// Synchronised batch normalisation: ranks that share their statistics compute what one rank with
// all of the batch does.
#include "nn/batch_norm.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <cmath>
#include <future>
#include <vector>

#include "engine/ops/ops.hpp"
#include "kernels/functors.hpp"
#include "nn/conv.hpp"
#include "nn/linear.hpp"
#include "nn/sequential.hpp"
#include "nn/stateless.hpp"
#include "tests/support/runtime.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using namespace collar::nn;

namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kRows = 3;  // of each rank

/// Threads that show each other their statistics. All merge them in the order of the ranks, so that
/// all get the same bits.
class Exchange {
 public:
  StatisticsExchange of(std::size_t rank) {
    StatisticsExchange exchange;
    exchange.merge_moments = [this, rank](View mean, View m2, double count) {
      show(rank, {values_in(mean), values_in(m2), count});
      double all = shown_[0].count;
      for (std::size_t c = 0; c < shown_[0].first.size(); ++c) {
        double merged_mean = double{shown_[0].first[c]};
        double merged_m2 = double{shown_[0].second[c]};
        kernels::MomentsMerge(all, shown_[1].count)(
            merged_mean, merged_m2, double{shown_[1].first[c]}, double{shown_[1].second[c]});
        mean.as<float>()[c] = static_cast<float>(merged_mean);
        m2.as<float>()[c] = static_cast<float>(merged_m2);
      }
      all += shown_[1].count;
      barrier_.arrive_and_wait();
      return all;
    };
    exchange.add_sums = [this, rank](View sums, double count) {
      show(rank, {values_in(sums), {}, count});
      for (std::size_t i = 0; i < shown_[0].first.size(); ++i) {
        sums.as<float>()[i] = shown_[0].first[i] + shown_[1].first[i];
      }
      const double all = shown_[0].count + shown_[1].count;
      barrier_.arrive_and_wait();
      return all;
    };
    return exchange;
  }

 private:
  struct Shown {
    std::vector<float> first, second;
    double count = 0;
  };
  static std::vector<float> values_in(View view) {
    return {view.as<float>(), view.as<float>() + view.shape.numel()};
  }
  void show(std::size_t rank, Shown values) {
    shown_[rank] = std::move(values);
    barrier_.arrive_and_wait();
  }

  std::array<Shown, kRanks> shown_;
  std::barrier<> barrier_{kRanks};
};

struct Outcome {
  std::vector<double> outputs;
  std::vector<std::vector<double>> gradients;  ///< of the sum of squared outputs
  std::vector<std::vector<double>> buffers;
};

/// A step of a small network on rows `first` to `last` of one batch.
Outcome step(std::int64_t first, std::int64_t last, const StatisticsExchange* exchange) {
  collar::test::OnCpu on(1);
  Sequential net;
  net.append<Conv2d>(3, 8, 3, Conv2d::Options{.padding = 1});
  net.append<BatchNorm2d>(8);
  net.append<ReLU>();
  net.append<Conv2d>(8, 8, 3);
  net.append<BatchNorm2d>(8);
  net.append<GlobalAvgPool>();
  net.append<Linear>(8, 4);
  net.initialize(1);
  net.to(on.context());
  set_statistics_exchange(net, exchange);
  const std::vector<float> all = on.random({kRanks * kRows, 3, 6, 6}, 2).to_vector<float>();
  constexpr std::int64_t kRow = 3 * 6 * 6;
  const std::vector<float> own(all.begin() + first * kRow, all.begin() + last * kRow);
  const Tensor y = net(Tensor::from<float>(own, {last - first, 3, 6, 6}).to(on.context()));
  sum(mul(y, y)).backward();
  Outcome outcome;
  outcome.outputs = collar::test::values_of(y);
  for (const Parameter& parameter : net.named_parameters()) {
    outcome.gradients.push_back(collar::test::values_of(parameter.tensor.grad()));
  }
  for (const Parameter& buffer : net.named_buffers()) {
    outcome.buffers.push_back(collar::test::values_of(buffer.tensor));
  }
  return outcome;
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    off = std::max(off, std::abs(got[i] - expected[i]));
  }
  CHECK(off <= 1e-5 * std::max(largest, 1.0));
}

}  // namespace

TEST_CASE("Two ranks that exchange their statistics compute as one with both batches") {
  const Outcome whole = step(0, kRanks * kRows, nullptr);
  Exchange meeting;
  std::array<StatisticsExchange, kRanks> exchanges{meeting.of(0), meeting.of(1)};
  auto other = std::async(std::launch::async, step, kRows, 2 * kRows, &exchanges[1]);
  const Outcome one = step(0, kRows, &exchanges[0]);
  const Outcome two = other.get();

  std::vector<double> outputs = one.outputs;
  outputs.insert(outputs.end(), two.outputs.begin(), two.outputs.end());
  check_close(outputs, whole.outputs);
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    std::vector<double> sum = one.gradients[i];
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += two.gradients[i][j];
    check_close(sum, whole.gradients[i]);
  }
  CHECK(one.buffers == two.buffers);
  for (std::size_t i = 0; i < whole.buffers.size(); ++i) {
    check_close(one.buffers[i], whole.buffers[i]);
  }

  // Without the exchange it would be another result.
  const Outcome alone = step(0, kRows, nullptr);
  CHECK(std::abs(alone.outputs[0] - one.outputs[0]) > 1e-3);
}
