// SPDX-License-Identifier: Apache-2.0
// Short ways to make tensors on a context, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/random.hpp"
#include "engine/tensor.hpp"

namespace collar::test {

/// A Runtime with few threads, and tensors bound to it.
class OnCpu {
 public:
  explicit OnCpu(int threads = 2, Isa isa = detect_isa())
      : runtime_(RuntimeOptions{{}, CpuOptions{threads, isa, false}}) {}

  DeviceContext& context() { return runtime_.context(); }
  CpuContext& cpu() { return std::get<CpuContext>(runtime_.context()); }

  Tensor tensor(std::initializer_list<float> values, const Shape& shape) {
    return Tensor::from<float>(values, shape).to(context());
  }
  Tensor labels(std::initializer_list<std::int64_t> values) {
    return Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())})
        .to(context());
  }
  /// Uniform in [-1, 1), different for each seed.
  Tensor random(const Shape& shape, std::uint64_t seed) {
    RandomStream stream({seed, Purpose::test, 0, 0});
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    for (float& value : values) value = stream.uniform(-1.0f, 1.0f);
    return Tensor::from<float>(values, shape).to(context());
  }
  Tensor leaf(Tensor tensor) {
    tensor.set_requires_grad(true);
    return tensor;
  }

 private:
  Runtime runtime_;
};

}  // namespace collar::test
