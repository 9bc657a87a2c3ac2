// SPDX-License-Identifier: Apache-2.0
#include "comm/bucket_plan.hpp"

#include <utility>

namespace collar::comm {
namespace {

constexpr std::int64_t kAlign = 16;  // f32 elements in 64 bytes

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::size_t BucketPlan::bucket_of(std::size_t parameter) const {
  std::size_t bucket = 0;
  while (bucket + 1 < buckets.size() && offsets[parameter] >= buckets[bucket].end) ++bucket;
  return bucket;
}

BucketPlan plan_buckets(std::span<const ParameterSize> parameters, const BucketLimits& limits) {
  BucketPlan plan;
  plan.parameters.assign(parameters.begin(), parameters.end());
  plan.offsets.resize(parameters.size());
  Bucket open;
  const auto close = [&] {
    open.end = open.begin + rounded_up(plan.elements - open.begin, kAlign * limits.ranks);
    plan.elements = open.end;
    plan.buckets.push_back(std::move(open));
    open = Bucket{plan.elements, plan.elements, {}};
  };
  for (std::size_t i = parameters.size(); i-- > 0;) {
    plan.offsets[i] = plan.elements;
    plan.elements += rounded_up(parameters[i].elements, kAlign);
    open.parameters.push_back(i);
    const std::size_t bytes = static_cast<std::size_t>(plan.elements - open.begin) * sizeof(float);
    if (bytes >= (plan.buckets.empty() ? limits.first_bytes : limits.bytes)) close();
  }
  if (!open.parameters.empty()) close();
  return plan;
}

}  // namespace collar::comm
