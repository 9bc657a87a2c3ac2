// SPDX-License-Identifier: Apache-2.0
#include "engine/random.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include "kernels/core/error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using nlohmann::json;

namespace {

using Indices = std::vector<std::int64_t>;

double from_hex(const json& text) {
  return std::strtod(text.get<std::string>().c_str(), nullptr);
}

/// The first draws of `kind`, one of the golden file's, as doubles (all kinds are exact in double
/// or listed as integers below 2^53, but random_() of int64, which has its own test).
std::vector<double> draw(const std::string& kind, std::uint64_t seed, std::size_t count) {
  TorchGenerator generator(seed);
  std::vector<double> values;
  const auto repeat = [&](auto&& next) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(next()));
  };
  if (kind == "MT19937 words") repeat([&] { return generator.random(); });
  if (kind == "int32 random_() (word mod 2^31)")
    repeat([&] { return generator.random() % (1u << 31); });
  if (kind == "randint(0,268435455)") repeat([&] { return generator.randint(0, 268435455); });
  if (kind == "randint(0,268435456)") repeat([&] { return generator.randint(0, 268435456); });
  if (kind == "randint(0,2147483647)") repeat([&] { return generator.randint(0, 2147483647); });
  if (kind == "randint(0,4294967296)") repeat([&] { return generator.randint(0, 4294967296); });
  if (kind == "randint(0,2**40)")
    repeat([&] { return generator.randint(0, std::int64_t{1} << 40); });
  if (kind == "randint(-5,9)") repeat([&] { return generator.randint(-5, 9); });
  if (kind == "randint(14) scalar calls") repeat([&] { return generator.randint(0, 14); });
  if (kind == "rand float32 vector" || kind == "rand float32 scalar calls")
    repeat([&] { return generator.rand(); });
  if (kind == "rand float64") repeat([&] { return generator.rand_double(); });
  if (kind == "uniform_(0.08,1) float32") repeat([&] { return generator.uniform(0.08, 1); });
  if (kind == "uniform_(-0.3,0.7) float32") repeat([&] { return generator.uniform(-0.3, 0.7); });
  if (kind.starts_with("normal_(0,1)")) {
    std::vector<float> out(count);
    generator.normal(out);
    values.assign(out.begin(), out.end());
  }
  return values;
}

}  // namespace

TEST_CASE("A stream's words are a pure function of seed, purpose, epoch and sample") {
  const auto words = [](const StreamPosition& position) {
    RandomStream stream(position);
    return std::vector{stream.next_u32(), stream.next_u32(), stream.next_u32(), stream.next_u32(),
                       stream.next_u32()};
  };
  using Words = std::vector<std::uint32_t>;
  CHECK(words({}) == Words{0x5b35c26d, 0x41f89e6d, 0xaa31aa80, 0x0eb6f778, 0xd59a8f3c});
  CHECK(words({.seed = 42, .purpose = Purpose::shuffle, .epoch = 3}) ==
        Words{0x1390383a, 0x1a48bfb1, 0x249f44cf, 0x6e0cc4cd, 0xce7b7f0f});
  CHECK(words({.seed = ~std::uint64_t{0},
               .purpose = Purpose::augmentation,
               .epoch = 7,
               .sample = 5'000'000'000}) ==
        Words{0x6fd391a7, 0x4ae468a2, 0x0afb35c0, 0x6f16ad6a, 0x7893765a});

  RandomStream stream({});
  CHECK(stream.next_u64() == 0x41f89e6d'5b35c26d);
  CHECK(stream.uniform() == static_cast<float>(0xaa31aa) * 0x1p-24f);
}

TEST_CASE("Integers below n are unbiased, also where rejection is frequent") {
  RandomStream vector({.seed = 7});
  for (const std::uint32_t expected : {1250491112u, 37702178u, 1456449854u, 708885999u, 306277932u,
                                       2901047776u, 2240562354u, 2534035673u})
    CHECK(vector.below(3'000'000'000u) == expected);

  RandomStream stream({.seed = 1});
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(stream.below(7));
  for (const int count : counts) CHECK(std::abs(count - 10'000) < 500);
  std::array<int, 3> thirds{};  // 3 * 2^30: a quarter of all words is rejected
  for (int i = 0; i < 30'000; ++i) ++thirds.at(stream.below(3u << 30) >> 30);
  for (const int count : thirds) CHECK(std::abs(count - 10'000) < 500);
  CHECK(stream.below(1) == 0);
  CHECK_THROWS_AS(stream.below(0), UsageError);
}

TEST_CASE("Floats stay inside their interval") {
  RandomStream stream({.seed = 2});
  const float next_to_one = std::nextafter(1.0f, 2.0f);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const float unit = stream.uniform();
    REQUIRE((unit >= 0.0f && unit < 1.0f));
    sum += unit;
    const float wide = stream.uniform(-3.0f, 5.0f);
    REQUIRE((wide >= -3.0f && wide < 5.0f));
    REQUIRE(stream.uniform(1.0f, next_to_one) == 1.0f);
  }
  CHECK(sum / 10'000 == Approx(0.5).margin(0.015));
}

TEST_CASE("Normal numbers of a stream follow the documented formula and have its moments") {
  RandomStream vector({.seed = 7});
  for (const float expected : {0x1.519d96p+0f, -0x1.cb06ccp+0f, 0x1.5c68d8p+0f, -0x1.4f7c08p-8f})
    CHECK(vector.normal() == Approx(expected).epsilon(1e-6));

  RandomStream stream({.seed = 3});
  const int n = 40'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(sum / n == Approx(0).margin(0.02));
  CHECK(squares / n == Approx(1).margin(0.03));
}

TEST_CASE("A permutation by a stream is a Fisher-Yates shuffle") {
  RandomStream stream({.seed = 42, .purpose = Purpose::shuffle});
  CHECK(permutation(10, stream) == Indices{2, 9, 6, 7, 5, 1, 3, 8, 4, 0});

  const Indices large = permutation(5000, stream);
  CHECK(std::set<std::int64_t>(large.begin(), large.end()).size() == 5000);
  CHECK(permutation(1, stream) == Indices{0});
  CHECK(permutation(0, stream).empty());
  CHECK_THROWS_AS(permutation(-1, stream), UsageError);
}

TEST_CASE("randperm of a seed is torch's") {
  const auto randperm = [](std::uint64_t seed) { return TorchGenerator(seed).randperm(10); };
  CHECK(randperm(42) == Indices{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(randperm(43) == Indices{8, 4, 9, 0, 5, 1, 6, 7, 2, 3});
  CHECK(randperm(44) == Indices{2, 6, 3, 8, 7, 9, 1, 4, 5, 0});
  CHECK(test::sha256_of(TorchGenerator(42).randperm(5912)).starts_with("ee371600095c6391"));
  CHECK(test::sha256_of(TorchGenerator(43).randperm(5912)).starts_with("7181864a08c6d5d2"));
  CHECK(test::sha256_of(TorchGenerator(42).randperm(7390)).starts_with("7fa3bd1dc4048ffe"));
  CHECK_THROWS_AS(TorchGenerator(42).randperm(-1), UsageError);
  CHECK_THROWS_AS(TorchGenerator(42).randint(3, 3), UsageError);
}

TEST_CASE("A sampler that keeps its generator draws two permutations an epoch and uses the first") {
  TorchGenerator generator;
  CHECK(generator.initial_seed() == TorchGenerator::kDefaultSeed);
  const auto epoch = [&generator] {
    const Indices order = generator.randperm(10);
    generator.randperm(10);
    return order;
  };
  CHECK(epoch() == Indices{0, 3, 7, 5, 2, 9, 8, 1, 4, 6});
  CHECK(epoch() == Indices{6, 4, 2, 9, 5, 1, 0, 7, 3, 8});
  CHECK(epoch() == Indices{4, 5, 9, 2, 3, 8, 1, 7, 0, 6});
}

TEST_CASE("A shuffling DataLoader without a generator seeds one with the second int64 it draws") {
  TorchGenerator generator(42);
  const auto epoch = [&generator] {
    generator.random_int64();  // the loader's base seed
    return TorchGenerator(static_cast<std::uint64_t>(generator.random_int64())).randperm(10);
  };
  CHECK(epoch() == Indices{8, 0, 9, 1, 4, 5, 6, 3, 2, 7});
  CHECK(epoch() == Indices{4, 6, 9, 3, 7, 5, 2, 0, 1, 8});
}

TEST_CASE("A restored generator goes on where it was") {
  TorchGenerator generator(5);
  std::vector<float> normals(3);
  for (int i = 0; i < 1000; ++i) generator.random();
  generator.normal(normals);  // leaves half a pair behind
  const TorchGenerator::State saved = generator.state();
  CHECK(saved.next_normal);

  TorchGenerator other;
  other.set_state(saved);
  std::vector<float> expected(7);
  std::vector<float> restored(7);
  generator.normal(expected);
  other.normal(restored);
  CHECK(restored == expected);
  CHECK(other.random64() == generator.random64());
  CHECK(other.state() == generator.state());

  TorchGenerator::State broken = saved;
  broken.position = 625;
  CHECK_THROWS_AS(other.set_state(broken), UsageError);
}

TEST_CASE("Draws of torch's generator: golden/data/rng.json") {
  REQUIRE_SHARED(path, "golden/data/rng.json");
  const json golden = test::read_json(path);
  std::set<std::string> checked;
  for (const json& row : golden.at("draws")) {
    const std::string kind = row.at("kind");
    const auto seed = row.at("seed").get<std::uint64_t>();
    const json& values = row.at("values");
    if (kind.starts_with("bernoulli")) continue;  // MKL's own stream
    if (kind == "int64 random_()") {
      TorchGenerator generator(seed);
      for (const json& value : values) CHECK(generator.random_int64() == value.get<std::int64_t>());
      checked.insert(kind);
      continue;
    }
    INFO(kind << ", seed " << seed);
    const std::vector<double> ours = draw(kind, seed, values.size());
    REQUIRE(ours.size() == values.size());
    const double tolerance = kind.starts_with("normal_") ? 1e-6 : 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double theirs = values[i].is_string() ? from_hex(values[i]) : values[i].get<double>();
      CHECK(std::abs(ours[i] - theirs) <= tolerance);
    }
    checked.insert(kind);
  }
  CHECK(checked.size() == 17);
}

TEST_CASE("Permutations of torch's generator: golden/data/rng.json") {
  REQUIRE_SHARED(path, "golden/data/rng.json");
  const json golden = test::read_json(path);
  for (const json& row : golden.at("randperm")) {
    TorchGenerator generator(row.at("seed").get<std::uint64_t>());
    const auto n = row.at("n").get<std::int64_t>();
    const Indices order = generator.randperm(n);
    INFO("n " << n << ", seed " << generator.initial_seed());
    if (row.contains("first")) {
      CHECK(json(order) == row.at("first"));
      CHECK(json(generator.randperm(n)) == row.at("second"));
    } else {
      CHECK(json(Indices(order.begin(), order.begin() + 8)) == row.at("head"));
      CHECK(test::sha256_of(order) == row.at("sha256_int64_le").get<std::string>());
      CHECK(generator.random() % (1u << 31) == row.at("next_int32_random").get<std::uint32_t>());
    }
  }
}
