// SPDX-License-Identifier: Apache-2.0
// Synchronised batch normalisation: ranks that exchange statistics train like one that has the
// whole batch.
#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "engine/ops/ops.hpp"
#include "kernels/functors.hpp"
#include "nn/batch_norm.hpp"
#include "nn/model_zoo.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using namespace collar::nn;
using collar::test::OnCpu;

namespace {

/// Two ranks that are threads. What each brings to an exchange is laid out for the other.
class TwoRanks {
 public:
  StatisticsExchange exchange(std::size_t rank) {
    StatisticsExchange exchange;
    exchange.merge_moments = [this, rank](View mean, View m2, double count) {
      const auto& [first, second] = give(rank, mean, m2, count);
      for (std::size_t c = 0; c < first.values.size(); ++c) {
        double merged_mean = first.values[c];
        double merged_m2 = first.m2[c];
        kernels::MomentsMerge(first.count, second.count)(merged_mean, merged_m2, second.values[c],
                                                         second.m2[c]);
        mean.as<float>()[c] = static_cast<float>(merged_mean);
        m2.as<float>()[c] = static_cast<float>(merged_m2);
      }
      return leave(first.count + second.count);
    };
    exchange.add_sums = [this, rank](View sums, double count) {
      const auto& [first, second] = give(rank, sums, {}, count);
      for (std::size_t i = 0; i < first.values.size(); ++i) {
        sums.as<float>()[i] = static_cast<float>(first.values[i] + second.values[i]);
      }
      return leave(first.count + second.count);
    };
    return exchange;
  }

 private:
  struct Given {
    std::vector<double> values;  // means or sums
    std::vector<double> m2;
    double count = 0;
  };

  static std::vector<double> copy(const View& view) {
    return view ? std::vector<double>(view.as<float>(), view.as<float>() + view.numel())
                : std::vector<double>();
  }
  const std::array<Given, 2>& give(std::size_t rank, const View& a, const View& b, double count) {
    given_[rank] = {copy(a), copy(b), count};
    barrier_.arrive_and_wait();
    return given_;
  }
  double leave(double count) {
    barrier_.arrive_and_wait();
    return count;
  }

  std::array<Given, 2> given_;
  std::barrier<> barrier_{2};
};

using Gradients = std::vector<std::vector<float>>;

/// The gradients of the loss of some of four pictures.
Gradients gradients(std::int64_t begin, std::int64_t end, const StatisticsExchange* exchange) {
  OnCpu on(1);
  const auto model = create_model("resnet18d", {.num_classes = 5, .seed = 1});
  model->to(on.context());
  set_statistics_exchange(*model, exchange);
  const Tensor images = on.random({4, 3, 64, 64}, 1).slice(begin, end);
  const Tensor labels = on.labels({1, 3, 0, 2}).slice(begin, end);
  CrossEntropyOptions options;
  options.reduction = Reduction::sum;
  cross_entropy((*model)(images), labels, options).backward();
  Gradients result;
  for (const Parameter& parameter : model->trainable_parameters()) {
    result.push_back(parameter.tensor.grad().to_vector<float>());
  }
  return result;
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(double{value}));
  return most;
}

}  // namespace

TEST_CASE("Two ranks that exchange statistics have the gradients of one with both batches") {
  const Gradients whole = gradients(0, 4, nullptr);
  TwoRanks ranks;
  Gradients parts[2];
  {
    const StatisticsExchange exchanges[2] = {ranks.exchange(0), ranks.exchange(1)};
    // One picture here, three there.
    std::jthread other([&] { parts[1] = gradients(1, 4, &exchanges[1]); });
    parts[0] = gradients(0, 1, &exchanges[0]);
  }
  const Gradients apart = gradients(0, 1, nullptr);
  double differs_apart = 0;
  for (std::size_t p = 0; p < whole.size(); ++p) {
    const double scale = largest(whole[p]);
    double worst = 0;
    for (std::size_t i = 0; i < whole[p].size(); ++i) {
      const double sum = double{parts[0][p][i]} + double{parts[1][p][i]};
      worst = std::max(worst, std::abs(sum - double{whole[p][i]}));
      differs_apart =
          std::max(differs_apart, std::abs(double{apart[p][i]} - double{parts[0][p][i]}) / scale);
    }
    INFO("parameter " << p << ": " << worst << " of " << scale);
    CHECK(worst <= 1e-3 * scale);
  }
  CHECK(differs_apart > 0.1);  // without the exchange it is another computation
}
