// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/evaluation.hpp"

#include <array>

#include "engine/ops/loss.hpp"

namespace collar {

Evaluation evaluate(Accelerator& accelerator, nn::Module& model, data::DataLoader& loader) {
  const NoGrad no_grad;
  const bool was_training = model.training();
  accelerator.synchronize_buffers();
  model.eval();
  Evaluation result;
  double loss_sum = 0;
  for (const data::Batch& batch : loader) {
    const Tensor logits = model(batch.images).slice(0, batch.valid);
    const Tensor labels = batch.labels.slice(0, batch.valid);
    if (batch.valid == 0) continue;
    loss_sum += cross_entropy(logits, labels, {.reduction = Reduction::sum}).item();
    result.accuracy.add(logits, labels);
  }
  model.train(was_training);
  std::array<double, 4> sums{loss_sum, static_cast<double>(result.accuracy.samples),
                             static_cast<double>(result.accuracy.correct1),
                             static_cast<double>(result.accuracy.correct5)};
  accelerator.communicator().all_reduce(std::span(sums));
  result.accuracy.samples = static_cast<std::int64_t>(sums[1]);
  result.accuracy.correct1 = static_cast<std::int64_t>(sums[2]);
  result.accuracy.correct5 = static_cast<std::int64_t>(sums[3]);
  result.loss = sums[1] > 0 ? sums[0] / sums[1] : 0;
  return result;
}

}  // namespace collar
