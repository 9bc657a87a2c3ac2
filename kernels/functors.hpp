// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one element, written once for host and device. cpu/ loops over it, cuda/
// launches it. Where PyTorch fuses a multiplication and an addition it is fused here, so that
// results are PyTorch's bit for bit; nowhere else is.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/core/inline.hpp"
#include "kernels/philox.hpp"

namespace collar::kernels {

/// a * b + c, rounded once.
COLLAR_INLINE float fused(float a, float b, float c) {
  return ::fmaf(a, b, c);
}

/// Whether the gradient passes a ReLU: not at zero, but at NaN.
COLLAR_INLINE bool relu_passes(float x) {
  return !(x <= 0.0f);
}

// ---- Batch statistics

/// How mean and m2 (sum of squared deviations) of two sets of values combine: Chan, Golub and
/// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
/// Nothing cancels, however large the mean.
struct MomentsMerge {
  double share;   ///< of the second set in all values
  double weight;  ///< of the squared distance of the means

  /// Not both counts may be 0.
  COLLAR_INLINE MomentsMerge(double count, double other_count)
      : share(other_count / (count + other_count)), weight(count * share) {}

  COLLAR_INLINE void operator()(double& mean, double& m2, double other_mean,
                                double other_m2) const {
    const double delta = other_mean - mean;
    mean += delta * share;
    m2 += other_m2 + delta * delta * weight;
  }
};

// ---- Optimizers. Scalars are computed in double and rounded to float where PyTorch's
// single-tensor path rounds them.

/// y + weight (x - y): torch.lerp, which starts from the nearer end.
COLLAR_INLINE float lerp(float y, float x, float weight) {
  const bool near = weight < 0.5f;
  return fused(near ? weight : weight - 1.0f, x - y, near ? y : x);
}

/// The numbers of one Adam or AdamW step that are the same for every element.
struct AdamCoefficients {
  float decay;     ///< AdamW: 1 - lr weight_decay, multiplies the parameter
  float l2;        ///< Adam: weight_decay, adds parameter to gradient
  float m_weight;  ///< 1 - beta1
  float beta2;
  float v_weight;  ///< 1 - beta2
  float v_scale;   ///< sqrt(1 - beta2^t)
  float epsilon;
  float step;  ///< -lr / (1 - beta1^t)
};

COLLAR_INLINE void adam_element(float& parameter, float gradient, float& m, float& v,
                                const AdamCoefficients& c) {
  parameter *= c.decay;
  if (c.l2 != 0.0f) gradient = fused(c.l2, parameter, gradient);
  m = lerp(m, gradient, c.m_weight);
  v = fused(c.v_weight * gradient, gradient, v * c.beta2);
  const float denominator = ::sqrtf(v) / c.v_scale + c.epsilon;
  parameter += c.step * m / denominator;
}

/// The numbers of one SGD step that are the same for every element.
struct SgdCoefficients {
  float weight_decay;
  float momentum;
  float gradient_weight;  ///< 1 - dampening
  float step;             ///< -lr
  bool nesterov;
};

/// Without momentum.
COLLAR_INLINE void sgd_element(float& parameter, float gradient, const SgdCoefficients& c) {
  if (c.weight_decay != 0.0f) gradient = fused(c.weight_decay, parameter, gradient);
  parameter = fused(c.step, gradient, parameter);
}

/// With momentum. In the first step the buffer becomes the gradient.
COLLAR_INLINE void sgd_element(float& parameter, float gradient, float& buffer, bool first,
                               const SgdCoefficients& c) {
  if (c.weight_decay != 0.0f) gradient = fused(c.weight_decay, parameter, gradient);
  buffer = first ? gradient : fused(c.gradient_weight, gradient, buffer * c.momentum);
  gradient = c.nesterov ? fused(c.momentum, buffer, gradient) : buffer;
  parameter = fused(c.step, gradient, parameter);
}

// ---- Dropout: element i is kept iff its uniform number is at least p

/// Key of a dropout mask: a function of the run's seed and where in the run we are, of nothing
/// else.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;   ///< logical rank
  std::uint32_t micro = 0;  ///< micro-step within the step
  std::uint32_t layer = 0;
};

/// The random words of one dropout mask. 224 bits of key do not fit one Philox block, so the key
/// goes through two:
///   (a, b, c, d) = philox(counter {step, step >> 32, rank, micro}, key {seed, seed >> 32 ^
///   0x64726f70 ("drop")}) words 4j .. 4j+3 = philox(counter {j, j >> 32, layer, c}, key {a, b})
class DropoutStream {
 public:
  COLLAR_INLINE explicit DropoutStream(const DropoutKey& key)
      : mixed_(philox4x32_10({low(key.step), high(key.step), key.rank, key.micro},
                             {low(key.seed), high(key.seed) ^ 0x64726f70u})),
        layer_(key.layer) {}

  /// The uniform numbers in [0, 1) of elements 4 quad .. 4 quad + 3 are unit_float of these.
  COLLAR_INLINE PhiloxCounter words(std::uint64_t quad) const {
    return philox4x32_10({low(quad), high(quad), layer_, mixed_[2]}, {mixed_[0], mixed_[1]});
  }

 private:
  COLLAR_INLINE static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  COLLAR_INLINE static std::uint32_t high(std::uint64_t x) {
    return static_cast<std::uint32_t>(x >> 32);
  }

  PhiloxCounter mixed_;
  std::uint32_t layer_;
};

}  // namespace collar::kernels
