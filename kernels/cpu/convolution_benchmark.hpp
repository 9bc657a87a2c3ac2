// SPDX-License-Identifier: Apache-2.0
// How long the convolutions of a network take, and nothing else of it: the bound that a training
// step is held against. They run in the network's order, each on buffers of its own, so that caches
// are as cold as in the network.
#pragma once

#include <span>
#include <vector>

#include "kernels/conv.hpp"

namespace collar::kernels {

struct ConvolutionWork {
  Shape x;
  Shape w;
  Conv2dGeometry geometry;
  int count = 1;         ///< how often the network has it, one after the other
  bool needs_dx = true;  ///< false for the first convolution
};

/// Seconds.
struct ConvolutionTimes {
  double forward = 0.0;
  double data = 0.0;
  double weights = 0.0;

  double total() const { return forward + data + weights; }
};

struct ConvolutionMeasurement {
  std::vector<ConvolutionTimes>
      each;                   ///< per work item, all its repetitions; medians over the steps
  ConvolutionTimes step;      ///< the whole list; medians over the steps
  double step_seconds = 0.0;  ///< median of the whole step
};

/// The value in the middle, of an even number the upper one; not of none.
double median(std::vector<double> values);

/// Floating-point operations of one pass (forward, data or weights) over one repetition.
double conv2d_flops(const ConvolutionWork& work);

/// Runs the list forwards and, if `backward`, in reverse order both gradients, `steps` times after
/// one that warms up. Images are in the layouts that conv2d_layouts names. Weights do not change,
/// so packing is not part of it; bringing weight gradients into the master's order is.
ConvolutionMeasurement measure_convolutions(CpuContext& context,
                                            std::span<const ConvolutionWork> list, DType dtype,
                                            bool backward, int steps);

}  // namespace collar::kernels
