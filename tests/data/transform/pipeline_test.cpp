// SPDX-License-Identifier: Apache-2.0
#include "data/transform/pipeline.hpp"

#include <catch2/catch.hpp>

#include "data/transform/crop.hpp"
#include "data/transform/flip.hpp"
#include "data/transform/resize.hpp"
#include "kernels/core/error.hpp"

using namespace collar;

TEST_CASE("A pipeline knows its output size and its own order") {
  using namespace data;
  CHECK(Pipeline{}.output_size() == std::nullopt);
  CHECK(Pipeline{Resize(20)}.output_size() == std::nullopt);
  CHECK(Pipeline{Resize(20), CenterCrop(16), RandomHorizontalFlip()}.output_size() ==
        ImageSize{16, 16});
  CHECK(Pipeline{RandomResizedCrop(24, 32), ToFloat()}.output_size() == ImageSize{32, 24});
  CHECK_THROWS_AS((Pipeline{ToFloat(), Resize(20, 20)}), UsageError);
}
