// SPDX-License-Identifier: Apache-2.0
// Where a random transform's draws come from. SampleRandom is Collar's own: a pure function of
// (seed, epoch, sample), so neither threads nor ranks nor a resume change a result. TorchRandom
// repeats the draws that torchvision makes from a torch generator.
#pragma once

#include <cstdint>

#include "engine/random.hpp"

namespace collar::data {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  /// In [0, 1), of 24 bits.
  virtual float uniform() = 0;
  /// In [low, high).
  virtual float uniform(float low, float high) = 0;
  /// In [0, n), n > 0.
  virtual int below(int n) = 0;

  /// True with probability p.
  bool chance(double p) { return static_cast<double>(uniform()) < p; }
};

/// One stream for each sample of each epoch; the transforms of a pipeline draw from it in turn.
class SampleRandom final : public RandomSource {
 public:
  SampleRandom(std::uint64_t seed, std::uint32_t epoch, std::int64_t sample)
      : stream_({seed, Purpose::augmentation, epoch, static_cast<std::uint64_t>(sample)}) {}

  float uniform() override { return stream_.uniform(); }
  float uniform(float low, float high) override { return stream_.uniform(low, high); }
  int below(int n) override {
    return static_cast<int>(stream_.below(static_cast<std::uint32_t>(n)));
  }

 private:
  RandomStream stream_;
};

/// `torch.rand(1)`, `torch.empty(1).uniform_(low, high)` and `torch.randint(0, n, (1,))`.
class TorchRandom final : public RandomSource {
 public:
  explicit TorchRandom(TorchGenerator& generator) : generator_(generator) {}

  float uniform() override { return generator_.rand(); }
  float uniform(float low, float high) override { return generator_.uniform(low, high); }
  int below(int n) override { return static_cast<int>(generator_.randint(0, n)); }

 private:
  TorchGenerator& generator_;
};

}  // namespace collar::data
