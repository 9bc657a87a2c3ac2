// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cast.hpp"
#include "kernels/core/dispatch.hpp"
#include "kernels/core/image_index.hpp"
#include "kernels/cpu/parallel.hpp"

namespace collar::kernels {
namespace {

// A tile small enough that both its sides stay in the first-level cache, whatever their strides.
constexpr std::int64_t kTileChannels = 16;
constexpr std::int64_t kTilePixels = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

template <typename From, typename To>
void convert_images(const CpuContext& context, ConstView x, View y) {
  const ImageIndex from(x.shape, x.layout);
  const ImageIndex to(y.shape, y.layout);
  const std::int64_t channels = x.shape[1];
  const std::int64_t pixels = x.shape[2] * x.shape[3];
  const std::int64_t channel_tiles = divide_up(channels, kTileChannels);
  const std::int64_t pixel_tiles = divide_up(pixels, kTilePixels);
  const std::int64_t tiles = x.shape[0] * channel_tiles * pixel_tiles;
  parallel_for(context, tiles, kTileChannels * kTilePixels, [&](std::int64_t tile) {
    const std::int64_t n = tile / pixel_tiles / channel_tiles;
    const std::int64_t first_channel = tile / pixel_tiles % channel_tiles * kTileChannels;
    const std::int64_t first_pixel = tile % pixel_tiles * kTilePixels;
    const std::int64_t last_channel = std::min(first_channel + kTileChannels, channels);
    const std::int64_t count = std::min(kTilePixels, pixels - first_pixel);
    for (std::int64_t c = first_channel; c < last_channel; ++c) {
      const From* source = x.as<From>() + from.channel(n, c) + first_pixel * from.pixel_stride();
      To* target = y.as<To>() + to.channel(n, c) + first_pixel * to.pixel_stride();
      for (std::int64_t i = 0; i < count; ++i) {
        target[i * to.pixel_stride()] = To(static_cast<float>(source[i * from.pixel_stride()]));
      }
    }
  });
}

template <typename From, typename To>
void convert_elements(const CpuContext& context, ConstView x, View y) {
  parallel_ranges(context, x.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y.as<To>()[i] = To(static_cast<float>(x.as<From>()[i]));
    }
  });
}

}  // namespace

void convert_layout(CpuContext& context, ConstView x, View y) {
  context.count_conversion(y.bytes());
  if (x.numel() == 0) return;
  dispatch_float(x.dtype, [&]<typename From>(std::type_identity<From>) {
    dispatch_float(y.dtype, [&]<typename To>(std::type_identity<To>) {
      if (x.layout == y.layout) {
        convert_elements<From, To>(context, x, y);
      } else {
        convert_images<From, To>(context, x, y);
      }
    });
  });
}

}  // namespace collar::kernels
