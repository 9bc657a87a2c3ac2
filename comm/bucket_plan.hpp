// SPDX-License-Identifier: Apache-2.0
// Where each gradient lies in the flat arena, and which stretches of the arena are reduced
// together. A pure function of the parameters, so ranks with the same parameters come to the same
// plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collar::comm {

struct ParameterSize {
  std::string name;
  std::int64_t elements = 0;
};

struct BucketLimits {
  std::size_t first_bytes = std::size_t{1} << 20;  ///< small, so that communication starts early
  std::size_t bytes = std::size_t{25} << 20;
  int ranks = 1;
};

/// A stretch [begin, end) of the arena, in f32 elements, and the parameters in it (positions in
/// registration order).
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<std::size_t> parameters;
};

struct BucketPlan {
  std::vector<ParameterSize> parameters;  ///< in registration order
  std::vector<std::int64_t>
      offsets;  ///< of each parameter in the arena, a multiple of 16 elements (64 bytes)
  std::vector<Bucket> buckets;  ///< in the order in which they are reduced
  std::int64_t elements = 0;    ///< of the whole arena

  std::size_t bucket_of(std::size_t parameter) const;
};

/// Lays the parameters out in reverse registration order, which is nearly the order in which a
/// backward pass finishes them. A bucket closes once it holds at least its limit (PyTorch's rule,
/// so it may exceed the limit by a parameter) and is padded to a multiple of 64 bytes a rank, so
/// that it divides evenly.
BucketPlan plan_buckets(std::span<const ParameterSize> parameters, const BucketLimits& limits = {});

}  // namespace collar::comm
