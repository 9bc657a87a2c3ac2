// SPDX-License-Identifier: Apache-2.0
// Whose memory the result of a batch normalisation has.
#include <catch2/catch.hpp>
#include <utility>

#include "engine/ops/ops.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;

namespace {

const void* bytes_of(const Tensor& tensor) {
  return tensor.view().data;
}

}  // namespace

TEST_CASE("Without a gradient, batch_norm takes the memory of a temporary") {
  collar::test::OnCpu on;
  const Tensor kept = on.random({2, 16, 4, 4}, 1);
  BatchNormOptions options;
  options.relu = true;
  const Tensor expected = batch_norm(kept, {}, options);
  CHECK(bytes_of(expected) != bytes_of(kept));

  Tensor temporary = kept.clone();
  const void* memory = bytes_of(temporary);
  const Tensor y = batch_norm(std::move(temporary), {}, options);
  CHECK(bytes_of(y) == memory);
  CHECK(y.to_vector<float>() == expected.to_vector<float>());
}

TEST_CASE("Memory that somebody else can see is left alone") {
  collar::test::OnCpu on;
  const Tensor values = on.random({2, 16, 4, 4}, 1);
  const auto before = values.to_vector<float>();
  batch_norm(values.detach(), {});
  batch_norm(values.viewed_as({32, 16}), {});
  CHECK(values.to_vector<float>() == before);

  // A recorded batch_norm needs its input for the backward pass.
  BatchNormParameters parameters;
  parameters.weight = on.leaf(Tensor::full({16}, 1, DType::f32, &on.context()));
  Tensor temporary = values.clone();
  const void* memory = bytes_of(temporary);
  const Tensor y = batch_norm(std::move(temporary), parameters);
  CHECK(bytes_of(y) != memory);
}
