// SPDX-License-Identifier: Apache-2.0
// Weights and inputs as a function of a tensor's name and shape (golden/README-models.md, section
// 1): both sides of a comparison compute them, so no weights have to be stored.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::test::formula {

/// FNV-1a, 64 bits.
inline std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// splitmix64 of the state.
inline std::uint64_t splitmix64(std::uint64_t state) {
  std::uint64_t z = state + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// u: n numbers in [0, 1), exact.
inline std::vector<float> unit(std::string_view name, std::int64_t n) {
  const std::uint64_t hash = name_hash(name);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(splitmix64(hash + i) >> 40) * 0x1p-24f;
  return values;
}

/// t = 2u - 1: n numbers in [-1, 1), exact.
inline std::vector<float> signed_unit(std::string_view name, std::int64_t n) {
  std::vector<float> values = unit(name, n);
  for (float& value : values) value = 2.0f * value - 1.0f;
  return values;
}

/// centre + t * bound, each operation rounded (no fused multiply-add).
inline std::vector<float> scaled(std::string_view name, std::int64_t n, float bound, float centre) {
  std::vector<float> values = signed_unit(name, n);
  for (float& value : values) {
    const float product = value * bound;
    value = centre + product;
  }
  return values;
}

/// A model's input (name "input" unless a file says otherwise): u.
inline Tensor input(const std::string& name, const Shape& shape) {
  return Tensor::from<float>(unit(name, shape.numel()), shape);
}

/// The shapes of everything in a model's state, by name.
using Shapes = std::map<std::string, Shape, std::less<>>;

/// Whether this is the weight of the last normalisation of a residual block, which damped models
/// scale by 1/4.
inline bool is_last_norm_weight(const std::string& name, const Shapes& shapes) {
  if (!name.starts_with("layer") || !name.ends_with(".weight")) return false;
  const std::size_t block = name.find('.', name.find('.') + 1);  // layerS.B
  const std::string prefix = name.substr(0, block);
  const bool bottleneck = shapes.contains(prefix + ".bn3.weight");
  return name == prefix + (bottleneck ? ".bn3.weight" : ".bn2.weight");
}

/// The value of one entry of a model's state. What it is follows from its name, its rank and its
/// neighbours.
inline Tensor entry(const std::string& name, const Shapes& shapes, bool damped = false) {
  const Shape& shape = shapes.at(name);
  const std::size_t dot = name.rfind('.');
  const std::string stem = name.substr(0, dot);
  const std::string leaf = name.substr(dot + 1);
  const auto make = [&](float bound, float centre) {
    std::vector<float> values = scaled(name, shape.numel(), bound, centre);
    if (damped && is_last_norm_weight(name, shapes))
      for (float& value : values) value *= 0.25f;
    return Tensor::from<float>(values, shape);
  };
  const auto linear_bound = [](const Shape& weight) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(weight[1])));
  };
  if (leaf == "num_batches_tracked") return Tensor::from<std::int64_t>({0}, shape);
  if (leaf == "running_mean") return make(0.05f, 0);
  if (leaf == "running_var") return make(0.2f, 1);
  if (leaf == "weight" && shape.rank() == 4) {
    const double fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
    return make(static_cast<float>(std::sqrt(6.0 / fan_out)), 0);
  }
  if (leaf == "weight" && shape.rank() == 2) return make(linear_bound(shape), 0);
  if (shapes.contains(stem + ".running_var"))
    return leaf == "weight" ? make(0.1f, 1) : make(0.05f, 0);
  if (leaf == "bias") return make(linear_bound(shapes.at(stem + ".weight")), 0);
  throw std::invalid_argument("the formula does not know " + name);
}

}  // namespace collar::test::formula
