// SPDX-License-Identifier: Apache-2.0
#include "comm/bucket_plan.hpp"

#include <fmt/format.h>

#include <string_view>

namespace collar::comm {
namespace {

constexpr std::int64_t kAlign = 16;  // f32 elements in 64 bytes

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// FNV-1a, 64 bits: the plans to tell apart are honest ones.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  void add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(value >> shift));
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

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

std::string fingerprint(const BucketPlan& plan) {
  Hash hash;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    hash.add(plan.parameters[i].name);
    hash.add(plan.parameters[i].elements);
    hash.add(plan.offsets[i]);
  }
  for (const Bucket& bucket : plan.buckets) {
    hash.add(bucket.begin);
    hash.add(bucket.end);
  }
  return fmt::format("{} parameters, {} buckets, {} elements, hash {:016x}", plan.parameters.size(),
                     plan.buckets.size(), plan.elements, hash.value());
}

}  // namespace collar::comm
