// SPDX-License-Identifier: Apache-2.0
#include "nn/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kernels/core/error.hpp"
#include "kernels/reduce.hpp"

namespace collar::nn {

std::int64_t count_top_k(const Tensor& logits, const Tensor& labels, std::int64_t k) {
  if (logits.rank() != 2 || labels.rank() != 1 || labels.size(0) != logits.size(0) ||
      (logits.dtype() != DType::f32 && logits.dtype() != DType::bf16) ||
      labels.dtype() != DType::i64 || logits.context() == nullptr) {
    throw ShapeError(
        fmt::format("count_top_k: f32 or bf16 logits [N, C] on a device and i64 labels [N] "
                    "expected, not {} and {}",
                    describe(logits), describe(labels)));
  }
  const std::int64_t rows = logits.size(0);
  if (k >= logits.size(1)) return rows;
  Tensor index = Tensor::empty({rows, k}, DType::i64, logits.context());
  std::visit([&](auto& device) { kernels::top_k(device, logits.view(), index.view()); },
             *logits.context());
  const std::vector<std::int64_t> largest = index.to_vector<std::int64_t>();
  const std::vector<std::int64_t> label = labels.to_vector<std::int64_t>();
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = largest.begin() + row * k;
    if (std::find(first, first + k, label[static_cast<std::size_t>(row)]) != first + k) ++correct;
  }
  return correct;
}

void Accuracy::add(const Tensor& logits, const Tensor& labels) {
  correct1 += count_top_k(logits, labels, 1);
  correct5 += count_top_k(logits, labels, 5);
  samples += logits.size(0);
}

}  // namespace collar::nn
