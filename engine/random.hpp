// SPDX-License-Identifier: Apache-2.0
// Random numbers, all of them. RandomStream is what Collar itself draws from: a pure function of
// where in the run a number is needed, so nothing has to be saved, skipped or handed to workers.
// TorchGenerator repeats torch's CPU generator, for orders and initial values that must equal
// PyTorch's. Both are defined here to the last bit (normal numbers: to the last bit of the C
// library's log and cos); no distribution of the standard library is used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/philox.hpp"

namespace collar {

/// What a number is drawn for. Streams of different purposes are independent. The values are part
/// of every result that has been published: they never change.
enum class Purpose : std::uint32_t {
  shuffle = 1,
  augmentation = 2,
  initialisation = 3,
  synthesis = 5,  ///< made-up data
  test = 100
};

/// The place of a stream in a run.
struct StreamPosition {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::test;
  std::uint32_t epoch = 0;
  std::uint64_t sample = 0;  ///< index in the sorted data set; 0 where there is no sample
};

/// A stream of Philox4x32-10 words:
///
///   - key: mix64(seed) ^ purpose, 64 bits, lower half first (mix64: splitmix64's output function)
///   - counter: {block, epoch, lower half of sample, upper half}, block = 0, 1, 2, …
///   - words: the four of block 0 in order, then the four of block 1, …
///
/// {seed 0, Purpose::test, epoch 0, sample 0} starts 5b35c26d 41f89e6d aa31aa80 0eb6f778; more
/// known answers are in tests/engine/random_test.cpp. The stream repeats after 2^34 words.
class RandomStream {
 public:
  explicit RandomStream(const StreamPosition& position);

  std::uint32_t next_u32();
  /// Two words, the first one is the lower half.
  std::uint64_t next_u64();
  /// In [0, 1): the upper 24 bits of one word. Every value is exact.
  float uniform();
  /// In [low, high): low + (high - low) * uniform() in double, rounded once; a result rounded up to
  /// `high` becomes the float below it. Needs low < high.
  float uniform(float low, float high);
  /// In [0, n), every value equally likely (Lemire 2019, with rejection). Throws UsageError if n is
  /// 0.
  std::uint32_t below(std::uint32_t n);
  /// True with probability p.
  bool chance(double p) { return static_cast<double>(uniform()) < p; }
  /// Standard normal, by Box and Muller from two words a, b: sqrt(-2 ln((a + 1) / 2^32)) * cos(2 pi
  /// b / 2^32), computed in double and rounded. At most 6.7 in magnitude.
  float normal();

 private:
  kernels::PhiloxKey key_;
  kernels::PhiloxCounter counter_;
  kernels::PhiloxCounter block_{};
  int used_ = 4;  ///< words of block_ already handed out
};

/// A random order of 0 … n-1 by Fisher and Yates: for i = n-1 … 1, exchange entry i with entry
/// below(i + 1). Throws UsageError unless 0 <= n < 2^32.
std::vector<std::int64_t> permutation(std::int64_t n, RandomStream& stream);

/// torch's CPU generator (torch 1.13 to 2.14): MT19937 seeded with the low 32 bits of the seed, and
/// the rules by which torch makes numbers of its words.
class TorchGenerator {
 public:
  static constexpr std::uint64_t kDefaultSeed = 67280421310721;
  static constexpr int kWords = 624;

  /// All there is to know about a generator, to save and restore it.
  struct State {
    std::uint64_t seed = 0;
    std::array<std::uint32_t, kWords> words{};
    std::uint32_t position = kWords;    ///< words already used, of 624
    std::optional<double> next_normal;  ///< the second half of the last pair of normal()
    friend bool operator==(const State&, const State&) = default;
  };

  explicit TorchGenerator(std::uint64_t seed = kDefaultSeed) { manual_seed(seed); }

  void manual_seed(std::uint64_t seed);
  /// Throws UsageError if the position is outside the words.
  void set_state(const State& state);
  const State& state() const { return state_; }
  std::uint64_t initial_seed() const { return state_.seed; }

  /// One word.
  std::uint32_t random();
  /// Two words, the first one is the upper half.
  std::uint64_t random64();
  /// `torch.empty((), dtype=torch.int64).random_()`: what loaders and samplers seed themselves
  /// with.
  std::int64_t random_int64();
  /// In [0, 1), float32: the lower 24 bits of one word.
  float rand();
  /// In [0, 1), float64: the lower 53 bits of random64().
  double rand_double();
  /// `uniform_(low, high)` of a float32 tensor: one fused multiply-add with the rounded bounds.
  float uniform(double low, double high);
  /// In [low, high): word mod range, or random64 mod range if the range is 2^28 or more (the rule
  /// of torch 2.14; older ones change at 2^32). Throws UsageError if it is empty.
  std::int64_t randint(std::int64_t low, std::int64_t high);
  /// Throws UsageError for a negative n and for n >= 2^32 / 20, where torch changes its rule.
  std::vector<std::int64_t> randperm(std::int64_t n);
  /// `normal_(mean, standard_deviation)` of a contiguous float32 tensor of this size: below 16
  /// elements torch draws them one by one in double, from 16 in blocks. Within 1e-6 *
  /// standard_deviation of torch, whose log, sin and cos are its own.
  void normal(std::span<float> out, double mean = 0, double standard_deviation = 1);

 private:
  double next_normal();
  void refill();

  State state_;
};

}  // namespace collar
