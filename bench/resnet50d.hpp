// SPDX-License-Identifier: Apache-2.0
// The distinct convolutions of a ResNet-50d in the network's order, with how often each occurs.
#pragma once

#include <vector>

#include "kernels/cpu/convolution_benchmark.hpp"

namespace collar::bench {

inline std::vector<kernels::ConvolutionWork> resnet50d_convolutions(std::int64_t batch,
                                                                    std::int64_t image_size) {
  std::vector<kernels::ConvolutionWork> list;
  std::int64_t size = image_size;
  const auto add = [&](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       int count) {
    list.push_back({{batch, in, size, size},
                    {out, in, kernel, kernel},
                    {{stride, stride}, {kernel / 2, kernel / 2}},
                    count,
                    in != 3});
    size = conv2d_output_shape(list.back().x, list.back().w, list.back().geometry)[2];
  };
  add(3, 32, 3, 2, 1);
  add(32, 32, 3, 1, 1);
  add(32, 64, 3, 1, 1);
  size = (size + 1) / 2;  // max pooling

  std::int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    const bool first = stage == 0;
    add(in, width, 1, 1, 1);
    add(width, width, 3, first ? 1 : 2, 1);
    add(width, width * 4, 1, 1, blocks[stage]);
    add(in, width * 4, 1, 1, 1);  // shortcut, after its pooling
    add(width * 4, width, 1, 1, blocks[stage] - 1);
    add(width, width, 3, 1, blocks[stage] - 1);
    in = width * 4;
  }
  return list;
}

}  // namespace collar::bench
