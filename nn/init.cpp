// SPDX-License-Identifier: Apache-2.0
#include "nn/init.hpp"

#include <algorithm>

#include "engine/random.hpp"

namespace collar::nn {
namespace {

/// FNV-1a, 64 bits.
std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

template <typename Draw>
void fill(Tensor& tensor, std::uint64_t seed, const std::string& name, const Draw& draw) {
  RandomStream stream(
      {.seed = seed, .purpose = Purpose::initialisation, .epoch = 0, .sample = hash_of(name)});
  std::generate_n(tensor.data<float>(), tensor.numel(), [&] { return draw(stream); });
  tensor.changed_in_place();
}

}  // namespace

void fill_normal(Tensor& tensor, double standard_deviation, std::uint64_t seed,
                 const std::string& name) {
  const auto deviation = static_cast<float>(standard_deviation);
  fill(tensor, seed, name, [&](RandomStream& stream) { return stream.normal() * deviation; });
}

void fill_uniform(Tensor& tensor, double bound, std::uint64_t seed, const std::string& name) {
  const auto limit = static_cast<float>(bound);
  fill(tensor, seed, name, [&](RandomStream& stream) { return stream.uniform(-limit, limit); });
}

void fill_constant(Tensor& tensor, float value) {
  std::fill_n(tensor.data<float>(), tensor.numel(), value);
  tensor.changed_in_place();
}

}  // namespace collar::nn
