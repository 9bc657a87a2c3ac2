// SPDX-License-Identifier: Apache-2.0
// How good a model is on a set of photos, counted over all ranks.
#pragma once

#include "apps/accelerate/accelerator.hpp"
#include "nn/metrics.hpp"

namespace collar {

struct Evaluation {
  double loss = 0;  ///< mean cross-entropy over the samples
  nn::Accuracy accuracy;
};

/// Runs the model in evaluation mode over one pass of a prepared loader; every sample counts once,
/// however the batches were filled up. All ranks get the same result. The model's mode and what
/// training tracks are as before afterwards.
Evaluation evaluate(Accelerator& accelerator, nn::Module& model, data::DataLoader& loader);

}  // namespace collar
