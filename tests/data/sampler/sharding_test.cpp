// SPDX-License-Identifier: Apache-2.0
#include "data/sampler/sharding.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "kernels/core/error.hpp"
#include "tests/data/support/csv.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using data::Sharding;
using nlohmann::json;

namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

struct Case {
  std::int64_t samples, batch_size, ranks;
  bool split, even, drop;

  Sharding sharding() const {
    Sharding result{.samples = samples, .batch_size = batch_size, .ranks = ranks};
    if (split) result = Sharding::split(samples, batch_size, ranks);
    result.even_batches = even;
    result.drop_last = drop;
    return result;
  }
  /// What accelerate's len() says.
  std::int64_t accelerate_length(std::int64_t rank) const {
    const bool overstated = split && !even && !drop;
    return overstated ? (samples + batch_size - 1) / batch_size : sharding().batches(rank);
  }
};

Batches batches_of(const Sharding& sharding, std::int64_t rank) {
  Batches result;
  for (std::int64_t k = 0; k < sharding.batches(rank); ++k) {
    const Sharding::Batch batch = sharding.batch(rank, k);
    auto& indices = result.emplace_back();
    for (std::int64_t i = 0; i < batch.size; ++i) {
      indices.push_back((batch.begin + i) % sharding.samples);
    }
  }
  return result;
}

/// The text whose hash is in batch_sampler_shard_large.csv.
std::string serialised(const Case& that) {
  std::string text;
  const Sharding sharding = that.sharding();
  for (std::int64_t rank = 0; rank < that.ranks; ++rank) {
    text += std::to_string(rank) + ":";
    const char* separator = "";
    for (const auto& batch : batches_of(sharding, rank)) {
      text += separator;
      separator = ";";
      const char* comma = "";
      for (const std::int64_t index : batch) {
        text += comma + std::to_string(index);
        comma = ",";
      }
    }
    text += "|len=" + std::to_string(that.accelerate_length(rank)) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("Ranks get the batches that accelerate gives them, in all four modes") {
  REQUIRE_SHARED(path, "golden/sharding/batch_sampler_shard.json");
  int wrong = 0, compared = 0;
  const json rows = test::read_json(path).at("rows");
  for (const json& row : rows) {
    const Case that{row.at("N"),          row.at("b"),         row.at("P"),
                    row.at("split") == 1, row.at("even") == 1, row.at("drop") == 1};
    for (std::int64_t rank = 0; rank < that.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      wrong += json(batches_of(that.sharding(), rank)) != row.at("batches")[at];
      wrong += that.accelerate_length(rank) != row.at("len")[at];
      ++compared;
    }
  }
  CHECK(wrong == 0);
  CHECK(compared > 3100);
}

TEST_CASE("Ranks get accelerate's batches for ten thousand larger configurations") {
  REQUIRE_SHARED(path, "golden/sharding/batch_sampler_shard_large.csv");
  int wrong = 0, compared = 0;
  for (const auto& row : test::read_csv(path)) {
    const auto number = [&row](const char* name) { return std::stoll(row.at(name)); };
    const Case that{number("N"),          number("b"),         number("P"),
                    number("split") == 1, number("even") == 1, number("drop") == 1};
    wrong += test::sha256_of(serialised(that)).substr(0, 32) != row.at("sha256_32");
    ++compared;
  }
  CHECK(wrong == 0);
  CHECK(compared == 10360);
}

TEST_CASE("Valid rows, step by step and rank by rank, are every sample once and in order") {
  for (std::int64_t samples = 0; samples < 40; ++samples) {
    for (std::int64_t batch_size = 1; batch_size <= 5; ++batch_size) {
      for (std::int64_t ranks = 1; ranks <= 4; ++ranks) {
        const Sharding sharding{samples, batch_size, ranks};
        std::int64_t next = 0;
        for (std::int64_t k = 0; k < sharding.batches(0); ++k) {
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const Sharding::Batch batch = sharding.batch(rank, k);
            REQUIRE(batch.size == batch_size);
            for (std::int64_t i = 0; i < batch.valid; ++i) REQUIRE(batch.begin + i == next++);
          }
        }
        REQUIRE(next == samples);
      }
    }
  }
}

TEST_CASE("A batch that cannot be split evenly is refused") {
  CHECK_THROWS_WITH(Sharding::split(10, 3, 2), "a batch of 3 cannot be split evenly over 2 ranks");
  CHECK_THROWS_AS((Sharding{10, 0, 1}.validate()), UsageError);
}
