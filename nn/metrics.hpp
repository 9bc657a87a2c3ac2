// SPDX-License-Identifier: Apache-2.0
// What is measured while training and evaluating: averages, and how often the right class is among
// the first.
#pragma once

#include <cstdint>

#include "engine/tensor.hpp"

namespace collar::nn {

/// How many rows of logits [N, C] have their label (i64 [N]) among the k largest; of equal logits
/// the lower class comes first. With k >= C that is every row. Throws ShapeError for shapes that do
/// not fit.
std::int64_t count_top_k(const Tensor& logits, const Tensor& labels, std::int64_t k);

/// A weighted mean, added up in f64.
class Average {
 public:
  void add(double value, double weight = 1) {
    sum_ += value * weight;
    weight_ += weight;
  }
  double weight() const { return weight_; }
  /// 0 before the first value.
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

/// Counts, so that several ranks' can be added.
struct Accuracy {
  std::int64_t samples = 0;
  std::int64_t correct1 = 0;
  std::int64_t correct5 = 0;  ///< every sample if there are fewer than 5 classes

  void add(const Tensor& logits, const Tensor& labels);
  /// In percent; 0 without samples.
  double top1() const { return percent(correct1); }
  double top5() const { return percent(correct5); }

 private:
  double percent(std::int64_t correct) const {
    return samples == 0 ? 0 : 100.0 * static_cast<double>(correct) / static_cast<double>(samples);
  }
};

}  // namespace collar::nn
