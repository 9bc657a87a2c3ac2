// SPDX-License-Identifier: Apache-2.0
// The inner loops that are compiled once for each instruction set, as a table of functions:
// kernels/cpu/*.cpp ask for the table of the context's instruction set, split the work over threads
// and call. Pointers are to elements of the given type, f32 or bf16; ranges are any length and need
// no alignment.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.hpp"
#include "kernels/functors.hpp"
#include "kernels/runtime/isa.hpp"

namespace collar::kernels {

inline constexpr int kMaxLanes = 16;

/// Pixels of one image that a strip of channels (strips.hpp) has. One lane with stride 1 is a
/// channel of the plain layout.
struct Run {
  DType dtype;
  int lanes;  ///< 16 (never above Loops::lanes), 8 or 1
  std::int64_t pixels;
  std::int64_t pixel_stride;
};

/// Count, and mean and sum of squared deviations of each lane.
struct LaneMoments {
  double count = 0;
  double mean[kMaxLanes] = {};
  double m2[kMaxLanes] = {};
};

/// Sums of each lane: of g, and of g (x - mean).
struct LaneGradientSums {
  double g[kMaxLanes] = {};
  double gx[kMaxLanes] = {};
};

/// y = (x - mean) scale + shift [+ residual], then perhaps ReLU and its mask bits.
struct Normalise {
  const void* x;
  const void* residual;  ///< or null
  void* y;
  std::uint8_t* mask;  ///< or null; only for runs of 8 and 16 lanes whose stride is a multiple of 8
  const float* mean;   ///< a value a lane, as the next two
  const float* scale;
  const float* shift;
  bool relu;
  bool stream;  ///< store past the caches; y is aligned to a run's vectors
};

/// g: the sum of the upstream gradients, rounded to the element type, where the mask passes it.
struct NormGradient {
  const void* dy[2];         ///< the second or null
  const std::uint8_t* mask;  ///< or null; as in Normalise
  const void* x;             ///< or null: terms with x are left out
  const float* mean;
};

/// dx = (g - mean_g - (x - mean) projection) slope
struct NormGradientCoefficients {
  float mean_g[kMaxLanes];
  float projection[kMaxLanes];
  float slope[kMaxLanes];
};

struct NormLoops {
  /// Adds the run's values to the moments.
  void (*moments)(const Run&, const void* x, LaneMoments&);
  void (*normalise)(const Run&, const Normalise&);
  /// Adds to the sums; writes g to dresidual unless that is null.
  void (*gradient_sums)(const Run&, const NormGradient&, void* dresidual, LaneGradientSums&);
  /// `stream` as in Normalise.
  void (*gradient)(const Run&, const NormGradient&, const NormGradientCoefficients&, bool stream,
                   void* dx);
};

/// One image of a strip, and the window that slides over it.
struct PoolPlane {
  DType dtype;
  int lanes;
  std::int64_t pixel_stride;
  std::int64_t height, width;          ///< of x
  std::int64_t out_height, out_width;  ///< of y
  std::int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool count_include_pad;
};

struct PoolLoops {
  void (*max_forward)(const PoolPlane&, const void* x, void* y, std::int32_t* index);
  void (*max_backward)(const PoolPlane&, const void* dy, const std::int32_t* index, void* dx);
  void (*average_forward)(const PoolPlane&, const void* x, void* y);
  void (*average_backward)(const PoolPlane&, const void* dy, void* dx);
  /// Sum of each lane.
  void (*sum)(const Run&, const void* x, double* sums);
  /// Every pixel becomes `value`, one a lane.
  void (*spread)(const Run&, const float* value, void* x);
};

/// Flat ranges of n elements. Masks start at a whole byte.
struct PointwiseLoops {
  void (*scale)(DType, std::int64_t n, const void* x, void* y, float factor);
  void (*add)(DType, std::int64_t n, const void* a, const void* b, void* y);
  void (*subtract)(DType, std::int64_t n, const void* a, const void* b, void* y);
  void (*multiply)(DType, std::int64_t n, const void* a, const void* b, void* y);
  /// mask may be null; x and y may be the same.
  void (*relu)(DType, std::int64_t n, const void* x, void* y, std::uint8_t* mask);
  /// The mask of a ReLU's output y.
  void (*passing)(DType, std::int64_t n, const void* y, std::uint8_t* mask);
  /// out = mask ? dy0 [+ dy1] : 0; dy1 and mask may be null.
  void (*masked_sum)(DType, std::int64_t n, const void* dy0, const void* dy1,
                     const std::uint8_t* mask, void* out);
  void (*widen)(std::int64_t n, const bfloat16* x, float* y);
  void (*narrow)(std::int64_t n, const float* x, bfloat16* y);
};

struct UpdateLoops {
  void (*adam)(std::int64_t n, float* parameter, const float* gradient, float* m, float* v,
               const AdamCoefficients&);
  void (*sgd)(std::int64_t n, float* parameter, const float* gradient, const SgdCoefficients&);
  void (*sgd_momentum)(std::int64_t n, float* parameter, const float* gradient, float* buffer,
                       bool first, const SgdCoefficients&);
  double (*sum_of_squares)(std::int64_t n, const float* x);
};

struct ImageLoops {
  /// weighted_rows() of kernels/image.hpp.
  void (*weighted_rows)(const std::uint8_t* rows, std::int64_t stride, const std::int32_t* weights,
                        int taps, std::int64_t n, std::uint8_t* out);
};

struct Loops {
  int lanes;  ///< floats in a vector register: 8 or 16
  const NormLoops& norm;
  const PoolLoops& pool;
  const PointwiseLoops& pointwise;
  const UpdateLoops& update;
  const ImageLoops& image;
};

const Loops& loops_for(Isa isa);

}  // namespace collar::kernels
