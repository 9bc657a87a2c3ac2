// SPDX-License-Identifier: Apache-2.0
#include "comm/bucket_plan.hpp"

#include <catch2/catch.hpp>

#include <vector>

using collar::comm::Bucket;
using collar::comm::BucketLimits;
using collar::comm::BucketPlan;
using collar::comm::ParameterSize;
using collar::comm::plan_buckets;

TEST_CASE("Parameters lie in reverse order of registration, aligned to 64 bytes") {
  const std::vector<ParameterSize> parameters{{"first", 10}, {"second", 16}, {"third", 1}};
  const BucketPlan plan = plan_buckets(parameters);
  CHECK(plan.offsets == std::vector<std::int64_t>{32, 16, 0});
  REQUIRE(plan.buckets.size() == 1);
  CHECK(plan.buckets[0].parameters == std::vector<std::size_t>{2, 1, 0});
  CHECK(plan.elements == 48);
}

TEST_CASE("A bucket closes once it holds its limit, the first one early") {
  const std::vector<ParameterSize> parameters{
      {"a", 64}, {"b", 64}, {"c", 64}, {"d", 64}, {"e", 64}};
  BucketLimits limits;
  limits.first_bytes = 256;  // one parameter
  limits.bytes = 400;        // two: the second one crosses the limit
  const BucketPlan plan = plan_buckets(parameters, limits);
  REQUIRE(plan.buckets.size() == 3);
  CHECK(plan.buckets[0].parameters == std::vector<std::size_t>{4});
  CHECK(plan.buckets[1].parameters == std::vector<std::size_t>{3, 2});
  CHECK(plan.buckets[2].parameters == std::vector<std::size_t>{1, 0});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Bucket& bucket = plan.buckets[plan.bucket_of(i)];
    CHECK(plan.offsets[i] >= bucket.begin);
    CHECK(plan.offsets[i] + parameters[i].elements <= bucket.end);
  }
}

TEST_CASE("Buckets divide evenly among the ranks and cover the arena without holes") {
  std::vector<ParameterSize> parameters;
  for (int i = 0; i < 40; ++i) parameters.push_back({"p" + std::to_string(i), 1 + 37 * i});
  for (const int ranks : {1, 2, 3, 5, 8}) {
    BucketLimits limits;
    limits.first_bytes = 1000;
    limits.bytes = 9000;
    limits.ranks = ranks;
    const BucketPlan plan = plan_buckets(parameters, limits);
    std::int64_t end = 0;
    for (const Bucket& bucket : plan.buckets) {
      CHECK(bucket.begin == end);
      CHECK((bucket.end - bucket.begin) % (16 * ranks) == 0);
      end = bucket.end;
    }
    CHECK(end == plan.elements);
  }
}

TEST_CASE("Without parameters there is nothing to reduce") {
  const BucketPlan plan = plan_buckets({});
  CHECK(plan.buckets.empty());
  CHECK(plan.elements == 0);
}
