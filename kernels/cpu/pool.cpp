// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool.hpp"

#include "kernels/core/element.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/strips.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {
namespace {

/// One pooling call: every image of every strip is a piece of work, x and y have the same strips.
class Planes {
 public:
  Planes(const CpuContext& context, const ConstView& x, const ConstView& y)
      : context_(context),
        loops_(loops_for(context.isa())),
        x_(x.shape, x.layout, loops_.lanes),
        y_(y.shape, y.layout, loops_.lanes),
        dtype_(x.dtype),
        empty_(x.numel() == 0 || y.numel() == 0) {}

  const PoolLoops& loops() const { return loops_.pool; }
  const ChannelStrips& x() const { return x_; }

  /// body(strip, image, position in x, position in y)
  template <typename Body>
  void for_each(const Body& body) const {
    if (empty_) return;
    parallel_for(context_, x_.count() * x_.images(), x_.pixels() * x_[0].lanes,
                 [&](std::int64_t i) {
                   const std::int64_t s = i / x_.images();
                   const std::int64_t image = i % x_.images();
                   body(x_[s], image, x_[s].offset + image * x_.image_stride(),
                        y_[s].offset + image * y_.image_stride());
                 });
  }

  PoolPlane plane(const Strip& strip, const Shape& x, const Shape& y,
                  const Pool2dGeometry& g) const {
    return {dtype_,
            strip.lanes,
            x_.pixel_stride(),
            x[2],
            x[3],
            y[2],
            y[3],
            {g.kernel[0], g.kernel[1]},
            {g.stride[0], g.stride[1]},
            {g.padding[0], g.padding[1]},
            {g.dilation[0], g.dilation[1]},
            g.count_include_pad};
  }
  Run run(const Strip& strip) const {
    return {dtype_, strip.lanes, x_.pixels(), x_.pixel_stride()};
  }

 private:
  const CpuContext& context_;
  const Loops& loops_;
  ChannelStrips x_;
  ChannelStrips y_;
  DType dtype_;
  bool empty_;
};

}  // namespace

void max_pool2d_forward(CpuContext& context, ConstView x, View y, View index,
                        const Pool2dGeometry& geometry) {
  const Planes planes(context, x, y);
  planes.for_each([&](const Strip& strip, std::int64_t, std::int64_t in, std::int64_t out) {
    planes.loops().max_forward(planes.plane(strip, x.shape, y.shape, geometry), at(x, in),
                               at(y, out), index ? index.as<std::int32_t>() + out : nullptr);
  });
}

void max_pool2d_backward(CpuContext& context, ConstView dy, ConstView index, View dx,
                         const Pool2dGeometry& geometry) {
  const Planes planes(context, dx, dy);
  planes.for_each([&](const Strip& strip, std::int64_t, std::int64_t in, std::int64_t out) {
    planes.loops().max_backward(planes.plane(strip, dx.shape, dy.shape, geometry), at(dy, out),
                                index.as<std::int32_t>() + out, at(dx, in));
  });
}

void avg_pool2d_forward(CpuContext& context, ConstView x, View y, const Pool2dGeometry& geometry) {
  const Planes planes(context, x, y);
  planes.for_each([&](const Strip& strip, std::int64_t, std::int64_t in, std::int64_t out) {
    planes.loops().average_forward(planes.plane(strip, x.shape, y.shape, geometry), at(x, in),
                                   at(y, out));
  });
}

void avg_pool2d_backward(CpuContext& context, ConstView dy, View dx,
                         const Pool2dGeometry& geometry) {
  const Planes planes(context, dx, dy);
  planes.for_each([&](const Strip& strip, std::int64_t, std::int64_t in, std::int64_t out) {
    planes.loops().average_backward(planes.plane(strip, dx.shape, dy.shape, geometry), at(dy, out),
                                    at(dx, in));
  });
}

void global_avg_pool_forward(CpuContext& context, ConstView x, View y) {
  const Planes planes(context, x, x);
  const auto pixels = static_cast<double>(planes.x().pixels());
  const std::int64_t channels = x.shape[1];
  planes.for_each([&](const Strip& strip, std::int64_t image, std::int64_t in, std::int64_t) {
    double sums[kMaxLanes];
    planes.loops().sum(planes.run(strip), at(x, in), sums);
    for (int lane = 0; lane < strip.lanes; ++lane) {
      write_float(y, image * channels + strip.channel + lane,
                  static_cast<float>(sums[lane] / pixels));
    }
  });
}

void global_avg_pool_backward(CpuContext& context, ConstView dy, View dx) {
  const Planes planes(context, dx, dx);
  const auto pixels = static_cast<float>(planes.x().pixels());
  const std::int64_t channels = dx.shape[1];
  planes.for_each([&](const Strip& strip, std::int64_t image, std::int64_t in, std::int64_t) {
    float share[kMaxLanes];
    for (int lane = 0; lane < strip.lanes; ++lane) {
      share[lane] = read_float(dy, image * channels + strip.channel + lane) / pixels;
    }
    planes.loops().spread(planes.run(strip), share, at(dx, in));
  });
}

}  // namespace collar::kernels
