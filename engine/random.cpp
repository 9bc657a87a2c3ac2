// SPDX-License-Identifier: Apache-2.0
#include "engine/random.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar {
namespace {

std::uint32_t low_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

/// The output function of splitmix64 (Steele, Lea, Flood 2014), a bijection.
std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

kernels::PhiloxKey key_of(const StreamPosition& position) {
  const std::uint64_t key = mix64(position.seed) ^ static_cast<std::uint64_t>(position.purpose);
  return {low_half(key), high_half(key)};
}

std::vector<std::int64_t> identity_order(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

}  // namespace

RandomStream::RandomStream(const StreamPosition& position)
    : key_(key_of(position)),
      counter_{0, position.epoch, low_half(position.sample), high_half(position.sample)} {}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = kernels::philox4x32_10(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

float RandomStream::uniform() {
  return kernels::unit_float(next_u32());
}

float RandomStream::uniform(float low, float high) {
  const double width = static_cast<double>(high) - static_cast<double>(low);
  const float value = static_cast<float>(low + width * static_cast<double>(uniform()));
  return value < high ? value : std::nextafter(high, low);
}

std::uint32_t RandomStream::below(std::uint32_t n) {
  if (n == 0) throw UsageError("RandomStream::below: the range [0, 0) is empty");
  std::uint64_t product = std::uint64_t{next_u32()} * n;
  if (low_half(product) < n) {
    const std::uint32_t biased = (0u - n) % n;  // 2^32 mod n products too many
    while (low_half(product) < biased) product = std::uint64_t{next_u32()} * n;
  }
  return high_half(product);
}

float RandomStream::normal() {
  const double a = (static_cast<double>(next_u32()) + 1.0) * 0x1p-32;
  const double b = static_cast<double>(next_u32()) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(a)) * std::cos(2.0 * std::numbers::pi * b));
}

std::vector<std::int64_t> permutation(std::int64_t n, RandomStream& stream) {
  if (n < 0 || n > std::numeric_limits<std::uint32_t>::max())
    throw UsageError(fmt::format("permutation: {} elements, expected 0 to 2^32 - 1", n));
  std::vector<std::int64_t> order = identity_order(n);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[stream.below(static_cast<std::uint32_t>(i + 1))]);
  return order;
}

void TorchGenerator::manual_seed(std::uint64_t seed) {
  state_ = State{};
  state_.seed = seed;
  state_.words[0] = low_half(seed);
  for (std::uint32_t i = 1; i < kWords; ++i) {
    const std::uint32_t previous = state_.words[i - 1];
    state_.words[i] = 1812433253u * (previous ^ (previous >> 30)) + i;
  }
}

void TorchGenerator::set_state(const State& state) {
  if (state.position > kWords)
    throw UsageError(
        fmt::format("TorchGenerator: position {} of {} words", state.position, kWords));
  state_ = state;
}

void TorchGenerator::refill() {
  constexpr std::size_t kCount = kWords;
  constexpr std::size_t kShift = 397;
  auto& words = state_.words;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint32_t joined = (words[i] & 0x80000000u) | (words[(i + 1) % kCount] & 0x7fffffffu);
    words[i] = words[(i + kShift) % kCount] ^ (joined >> 1) ^ ((joined & 1u) * 0x9908b0dfu);
  }
  state_.position = 0;
}

std::uint32_t TorchGenerator::random() {
  if (state_.position == kWords) refill();
  std::uint32_t word = state_.words[state_.position++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

std::uint64_t TorchGenerator::random64() {
  const std::uint64_t high = random();
  return (high << 32) | random();
}

std::int64_t TorchGenerator::random_int64() {
  return static_cast<std::int64_t>(random64() & 0x7fffffffffffffffu);
}

float TorchGenerator::rand() {
  return static_cast<float>(random() & 0xffffffu) * 0x1p-24f;
}

double TorchGenerator::rand_double() {
  return static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

float TorchGenerator::uniform(double low, double high) {
  const float from = static_cast<float>(low);
  return std::fma(rand(), static_cast<float>(high) - from, from);
}

std::int64_t TorchGenerator::randint(std::int64_t low, std::int64_t high) {
  if (low >= high) throw UsageError(fmt::format("randint: the range [{}, {}) is empty", low, high));
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t drawn = range >= (std::uint64_t{1} << 28) ? random64() : random();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + drawn % range);
}

std::vector<std::int64_t> TorchGenerator::randperm(std::int64_t n) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 32) / 20;
  if (n < 0 || n >= kLimit)
    throw UsageError(fmt::format("randperm: {} elements, expected 0 to {}", n, kLimit - 1));
  std::vector<std::int64_t> order = identity_order(n);
  const std::size_t count = order.size();
  for (std::size_t i = 0; i + 1 < count; ++i)
    std::swap(order[i], order[i + random() % static_cast<std::uint32_t>(count - i)]);
  return order;
}

double TorchGenerator::next_normal() {
  if (state_.next_normal) return *std::exchange(state_.next_normal, std::nullopt);
  const double angle = 2.0 * std::numbers::pi * rand_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-rand_double()));
  state_.next_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

void TorchGenerator::normal(std::span<float> out, double mean, double standard_deviation) {
  constexpr std::size_t kBlock = 16;
  if (out.size() < kBlock) {
    for (float& value : out) value = static_cast<float>(next_normal() * standard_deviation + mean);
    return;
  }
  const float m = static_cast<float>(mean);
  const float s = static_cast<float>(standard_deviation);
  const auto transform = [m, s](std::span<float> block) {
    for (std::size_t j = 0; j < kBlock / 2; ++j) {
      const float radius = s * std::sqrt(-2.0f * std::log(1.0f - block[j]));
      const float angle = 2.0f * std::numbers::pi_v<float> * block[j + kBlock / 2];
      block[j] = radius * std::cos(angle) + m;
      block[j + kBlock / 2] = radius * std::sin(angle) + m;
    }
  };
  for (float& value : out) value = rand();
  for (std::size_t i = 0; i + kBlock <= out.size(); i += kBlock) transform(out.subspan(i, kBlock));
  if (out.size() % kBlock != 0) {
    const std::span<float> tail = out.last(kBlock);
    for (float& value : tail) value = rand();
    transform(tail);
  }
}

}  // namespace collar
