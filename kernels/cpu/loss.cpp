// SPDX-License-Identifier: Apache-2.0
// Rows are few and short (classes of a batch), so this is plain code, a row a work item. Sums of a
// row are formed in double.
#include "kernels/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/core/element.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"

namespace collar::kernels {
namespace {

/// An exponential is worth about this many additions.
constexpr std::int64_t kRowCost = 16;

/// One row of logits and what its softmax is made of.
class LogitRow {
 public:
  LogitRow(const ConstView& x, std::int64_t row)
      : x_(x), begin_(row * x.shape[1]), columns_(x.shape[1]) {
    for (std::int64_t c = 0; c < columns_; ++c) max_ = std::max(max_, (*this)[c]);
    for (std::int64_t c = 0; c < columns_; ++c) sum_ += double{shifted_exp(c)};
    log_sum_ = std::log(sum_);
  }

  float operator[](std::int64_t column) const { return read_float(x_, begin_ + column); }
  float probability(std::int64_t column) const {
    return static_cast<float>(double{shifted_exp(column)} / sum_);
  }
  double log_probability(std::int64_t column) const {
    return double{(*this)[column]} - double{max_} - log_sum_;
  }

 private:
  float shifted_exp(std::int64_t column) const { return std::exp((*this)[column] - max_); }

  const ConstView& x_;
  std::int64_t begin_;
  std::int64_t columns_;
  float max_ = -std::numeric_limits<float>::infinity();  // NaN gets into the sum, not in here
  double sum_ = 0;
  double log_sum_ = 0;
};

template <typename Body>
void for_each_row(CpuContext& context, const Shape& shape, const Body& body) {
  parallel_for(context, shape[0], shape[1] * kRowCost, body);
}

/// dx from y, dy and the sum of term(y, dy) over the row.
template <typename Term, typename Gradient>
void backward_rows(CpuContext& context, const ConstView& y, const ConstView& dy, const View& dx,
                   const Term& term, const Gradient& gradient) {
  const std::int64_t columns = y.shape[1];
  for_each_row(context, y.shape, [&](std::int64_t row) {
    const std::int64_t begin = row * columns;
    double sum = 0;
    for (std::int64_t i = begin; i < begin + columns; ++i) {
      sum += term(read_float(y, i), read_float(dy, i));
    }
    for (std::int64_t i = begin; i < begin + columns; ++i) {
      write_float(dx, i, gradient(read_float(y, i), read_float(dy, i), static_cast<float>(sum)));
    }
  });
}

/// The weights that a row's loss gives to minus the log-probabilities of the classes.
class RowTarget {
 public:
  RowTarget(const CrossEntropy& args, std::int64_t row)
      : args_(args),
        columns_(args.logits.shape[1]),
        row_(row),
        soft_(args.target.dtype != DType::i64),
        smoothing_(args.label_smoothing / static_cast<double>(columns_)) {
    if (!soft_) index_ = args.target.as<std::int64_t>()[row];
  }

  bool ignored() const { return !soft_ && index_ == args_.ignore_index; }
  /// What the row contributes to the divisor of a mean.
  double share() const {
    if (soft_) return 1;
    return ignored() ? 0 : class_weight(index_);
  }
  double operator[](std::int64_t column) const {
    if (ignored()) return 0;
    const double target = soft_ ? double{args_.target.as<float>()[row_ * columns_ + column]}
                                : (column == index_ ? 1.0 : 0.0);
    return ((1 - args_.label_smoothing) * target + smoothing_) * class_weight(column);
  }
  /// Whether a class of weight 0 is left out of the sum, even if its log-probability is infinite.
  bool leaves_out(std::int64_t column) const {
    return !soft_ && args_.label_smoothing == 0 && column != index_;
  }

 private:
  double class_weight(std::int64_t column) const {
    return args_.weight ? double{args_.weight.as<float>()[column]} : 1.0;
  }

  const CrossEntropy& args_;
  std::int64_t columns_;
  std::int64_t row_;
  bool soft_;
  double smoothing_;
  std::int64_t index_ = 0;
};

double row_loss(const LogitRow& logits, const RowTarget& target, std::int64_t columns) {
  if (target.ignored()) return 0;
  double loss = 0;
  for (std::int64_t c = 0; c < columns; ++c) {
    if (!target.leaves_out(c)) loss -= target[c] * logits.log_probability(c);
  }
  return loss;
}

/// d loss / d logit_c = probability_c sum(target) - target_c
void row_gradient(const LogitRow& logits, const RowTarget& target, std::int64_t columns,
                  double factor, float* gradient) {
  if (target.ignored()) {
    std::fill_n(gradient, columns, 0.0f);
    return;
  }
  double total = 0;
  for (std::int64_t c = 0; c < columns; ++c) total += target[c];
  for (std::int64_t c = 0; c < columns; ++c) {
    const double slope = double{logits.probability(c)} * total - target[c];
    gradient[c] = static_cast<float>(slope * factor);
  }
}

}  // namespace

void softmax_forward(CpuContext& context, ConstView x, View y) {
  for_each_row(context, x.shape, [&](std::int64_t row) {
    const LogitRow logits(x, row);
    for (std::int64_t c = 0; c < x.shape[1]; ++c) {
      write_float(y, row * x.shape[1] + c, logits.probability(c));
    }
  });
}

void softmax_backward(CpuContext& context, ConstView y, ConstView dy, View dx) {
  backward_rows(
      context, y, dy, dx, [](float p, float g) { return double{p} * double{g}; },
      [](float p, float g, float sum) { return p * (g - sum); });
}

void log_softmax_forward(CpuContext& context, ConstView x, View y) {
  for_each_row(context, x.shape, [&](std::int64_t row) {
    const LogitRow logits(x, row);
    for (std::int64_t c = 0; c < x.shape[1]; ++c) {
      write_float(y, row * x.shape[1] + c, static_cast<float>(logits.log_probability(c)));
    }
  });
}

void log_softmax_backward(CpuContext& context, ConstView y, ConstView dy, View dx) {
  backward_rows(
      context, y, dy, dx, [](float, float g) { return double{g}; },
      [](float log_p, float g, float sum) { return g - std::exp(log_p) * sum; });
}

void cross_entropy(CpuContext& context, const CrossEntropy& args) {
  const std::int64_t rows = args.logits.shape[0];
  const std::int64_t columns = args.logits.shape[1];
  double divisor = 1;
  if (args.reduction == Reduction::mean) {
    divisor = 0;
    for (std::int64_t row = 0; row < rows; ++row) divisor += RowTarget(args, row).share();
  }
  Scratch<double> losses(context, rows);
  for_each_row(context, args.logits.shape, [&](std::int64_t row) {
    const LogitRow logits(args.logits, row);
    const RowTarget target(args, row);
    losses[row] = row_loss(logits, target, columns);
    if (args.gradient) {
      row_gradient(logits, target, columns, 1 / divisor, args.gradient.as<float>() + row * columns);
    }
  });
  float* loss = args.loss.as<float>();
  if (args.reduction == Reduction::none) {
    for (std::int64_t row = 0; row < rows; ++row) loss[row] = static_cast<float>(losses[row]);
    return;
  }
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) sum += losses[row];
  *loss = static_cast<float>(sum / divisor);
}

}  // namespace collar::kernels
