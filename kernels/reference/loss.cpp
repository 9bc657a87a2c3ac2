// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/loss.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/core/element.hpp"

namespace collar::kernels::reference {
namespace {

using Row = std::vector<double>;

Row read_row(const ConstView& x, std::int64_t row) {
  Row values;
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    values.push_back(double{read_float(x, row * x.shape[1] + c)});
  }
  return values;
}

void write_row(const View& y, std::int64_t row, const Row& values) {
  for (std::size_t c = 0; c < values.size(); ++c) {
    write_float(y, row * y.shape[1] + static_cast<std::int64_t>(c), static_cast<float>(values[c]));
  }
}

Row log_softmax(Row x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double value : x) sum += std::exp(value - largest);
  for (double& value : x) value -= largest + std::log(sum);
  return x;
}

Row exponentials(Row x) {
  for (double& value : x) value = std::exp(value);
  return x;
}

}  // namespace

void softmax_forward(ConstView x, View y) {
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    write_row(y, row, exponentials(log_softmax(read_row(x, row))));
  }
}

void softmax_backward(ConstView y, ConstView dy, View dx) {
  for (std::int64_t row = 0; row < y.shape[0]; ++row) {
    const Row p = read_row(y, row);
    Row g = read_row(dy, row);
    double sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c) sum += p[c] * g[c];
    for (std::size_t c = 0; c < p.size(); ++c) g[c] = p[c] * (g[c] - sum);
    write_row(dx, row, g);
  }
}

void log_softmax_forward(ConstView x, View y) {
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    write_row(y, row, log_softmax(read_row(x, row)));
  }
}

void log_softmax_backward(ConstView y, ConstView dy, View dx) {
  for (std::int64_t row = 0; row < y.shape[0]; ++row) {
    const Row p = exponentials(read_row(y, row));
    Row g = read_row(dy, row);
    double sum = 0;
    for (const double value : g) sum += value;
    for (std::size_t c = 0; c < p.size(); ++c) g[c] -= p[c] * sum;
    write_row(dx, row, g);
  }
}

void cross_entropy(const CrossEntropy& args) {
  const std::int64_t rows = args.logits.shape[0];
  const auto classes = static_cast<std::size_t>(args.logits.shape[1]);
  const double smoothing = args.label_smoothing;
  const auto weight = [&](std::size_t c) {
    return args.weight ? double{read_float(args.weight, static_cast<std::int64_t>(c))} : 1.0;
  };
  Row losses;
  std::vector<Row> gradients;
  double divisor = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Row log_p = log_softmax(read_row(args.logits, row));
    Row slope(classes, 0.0);  // d loss / d log_p
    double loss = 0;
    if (args.target.dtype == DType::i64) {
      const std::int64_t target = args.target.as<std::int64_t>()[row];
      if (target != args.ignore_index) {
        const auto t = static_cast<std::size_t>(target);
        divisor += weight(t);
        slope[t] -= (1 - smoothing) * weight(t);
        loss -= (1 - smoothing) * weight(t) * log_p[t];
        for (std::size_t c = 0; smoothing > 0 && c < classes; ++c) {
          slope[c] -= smoothing / static_cast<double>(classes) * weight(c);
          loss -= smoothing / static_cast<double>(classes) * weight(c) * log_p[c];
        }
      }
    } else {
      divisor += 1;
      const Row target = read_row(args.target, row);
      for (std::size_t c = 0; c < classes; ++c) {
        const double smoothed =
            target[c] * (1 - smoothing) + smoothing / static_cast<double>(classes);
        slope[c] = -smoothed * weight(c);
        loss += slope[c] * log_p[c];
      }
    }
    double total = 0;
    for (const double value : slope) total += value;
    Row gradient(classes, 0.0);
    for (std::size_t c = 0; c < classes; ++c) gradient[c] = slope[c] - std::exp(log_p[c]) * total;
    losses.push_back(loss);
    gradients.push_back(gradient);
  }
  const double scale = args.reduction == Reduction::mean && divisor > 0 ? 1 / divisor : 1;
  for (std::int64_t row = 0; args.gradient && row < rows; ++row) {
    Row& gradient = gradients[static_cast<std::size_t>(row)];
    for (double& value : gradient) value *= scale;
    write_row(args.gradient, row, gradient);
  }
  if (args.reduction == Reduction::none) {
    for (std::size_t row = 0; row < losses.size(); ++row) {
      write_float(args.loss, static_cast<std::int64_t>(row), static_cast<float>(losses[row]));
    }
    return;
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  if (args.reduction == Reduction::mean) sum /= divisor;
  write_float(args.loss, 0, static_cast<float>(sum));
}

}  // namespace collar::kernels::reference
