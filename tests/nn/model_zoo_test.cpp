// SPDX-License-Identifier: Apache-2.0
#include "nn/model_zoo.hpp"

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"

using namespace collar;
using namespace collar::nn;

TEST_CASE("A model knows where its default weights are and what their images look like") {
  const ModelInfo& info = model_info("resnet50d");
  CHECK(info.pretrained.tag == "ra2_in1k");
  CHECK(info.hub_id() == "timm/resnet50d.ra2_in1k");
  CHECK(info.weights_url.ends_with("resnet50d_ra2-464e36ba.pth"));
  CHECK(info.pretrained.interpolation == "bicubic");
  CHECK(info.pretrained.crop_pct == 0.875);
  CHECK(info.pretrained.test_input_size == std::array<std::int64_t, 3>{3, 288, 288});
  CHECK(info.pretrained.first_conv == "conv1.0");
  CHECK(&model_info("resnet50d.ra2_in1k") == &info);

  CHECK(model_info("resnet18").pretrained.tag == "a1_in1k");
  CHECK(model_info("resnet18").pretrained.crop_pct == 0.95);
  CHECK(model_info("resnet10t").pretrained.pool_size == std::array<std::int64_t, 2>{6, 6});
  CHECK(model_info("resnet200").hub_id().empty());
}

TEST_CASE("An unknown name is answered with the nearest one") {
  CHECK_THROWS_WITH(model_info("resnet50b"), Catch::Contains("did you mean \"resnet50\"?"));
  CHECK_THROWS_WITH(model_info("resnt18d"), Catch::Contains("did you mean \"resnet18d\"?"));
  CHECK_THROWS_WITH(model_info("resnet50d.a3_in1k"),
                    Catch::Contains("did you mean \"resnet50d\"?"));
  CHECK_THROWS_AS(model_info(""), UsageError);
  CHECK_THROWS_AS(create_model("resnet18", {.num_classes = 0}), UsageError);
}
