// SPDX-License-Identifier: Apache-2.0
// The backward pass of batch normalisation: sums over each channel, then dx.
#include <array>
#include <optional>

#include "kernels/cpu/norm_work.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/norm.hpp"

namespace collar::kernels {
namespace {

void add(LaneGradientSums& total, const LaneGradientSums& more, int lanes) {
  for (int lane = 0; lane < lanes; ++lane) {
    total.g[lane] += more.g[lane];
    total.gx[lane] += more.gx[lane];
  }
}

/// The backward pass with the mask out of the way where strips would share its bytes.
class Backward {
 public:
  Backward(CpuContext& context, const BatchNormBackward& args, const Work& work)
      : args_(args), work_(work), upstream_(args.dy), mask_(args.mask), dresidual_(args.dresidual) {
    if (work.byte_aligned() || !(mask_ || upstream_[1])) return;
    View g = args.dresidual ? args.dresidual : args.dx;
    if (!g) {
      const auto bytes = static_cast<std::int64_t>(args.dy[0].bytes());
      g = {own_.emplace(context, bytes).data(), args.dy[0].dtype, args.dy[0].shape,
           args.dy[0].layout};
    }
    parallel_ranges(context, g.numel(), [&](std::int64_t begin, std::int64_t end) {
      const std::uint8_t* mask = mask_ ? mask_.as<std::uint8_t>() + begin / 8 : nullptr;
      work.loops().pointwise.masked_sum(g.dtype, end - begin, at(args.dy[0], begin),
                                        at(args.dy[1], begin), mask, at(g, begin));
    });
    upstream_ = {g, ConstView{}};
    mask_ = {};
    dresidual_ = {};
  }

  bool needs_sums() const {
    return args_.dweight || args_.dbias || dresidual_ || (args_.dx && args_.batch_statistics);
  }

  /// Writes dresidual on the way.
  LaneGradientSums sums(const Strip& strip, std::int64_t image) const {
    LaneGradientSums sums;
    const std::int64_t position = work_.position(strip, image);
    work_.loops().norm.gradient_sums(work_.run(strip), source(upstream_, mask_, strip, position),
                                     at(dresidual_, position), sums);
    return sums;
  }

  void write_affine(const Strip& strip, const LaneGradientSums& sums) const {
    const auto put = [&](const View& gradient, std::int64_t channel, double value) {
      if (!gradient) return;
      float& out = gradient.as<float>()[channel];
      out = static_cast<float>(args_.accumulate_affine ? double{out} + value : value);
    };
    for (int lane = 0; lane < strip.lanes; ++lane) {
      const std::int64_t channel = strip.channel + lane;
      put(args_.dbias, channel, sums.g[lane]);
      put(args_.dweight, channel, sums.gx[lane] * double{args_.inv_std.as<float>()[channel]});
    }
  }

  void write_dx(const Strip& strip, std::int64_t image, const LaneGradientSums& sums,
                double count) const {
    if (!args_.dx) return;
    NormGradientCoefficients coefficients;
    for (int lane = 0; lane < strip.lanes; ++lane) {
      const std::int64_t channel = strip.channel + lane;
      const float inv_std = args_.inv_std.as<float>()[channel];
      coefficients.slope[lane] = inv_std * value_or(args_.weight, channel, 1.0f);
      coefficients.mean_g[lane] = static_cast<float>(sums.g[lane] / count);
      coefficients.projection[lane] =
          static_cast<float>(sums.gx[lane] * double{inv_std} * double{inv_std} / count);
    }
    const std::int64_t position = work_.position(strip, image);
    // g has been written to dresidual by sums(): one tensor to read instead of two and a mask.
    NormGradient g = dresidual_ ? source({dresidual_, ConstView{}}, {}, strip, position)
                                : source(upstream_, mask_, strip, position);
    if (!args_.batch_statistics) {
      coefficients = constant_statistics(coefficients);
      g.x = nullptr;
    }
    work_.loops().norm.gradient(work_.run(strip), g, coefficients, work_.streams(args_.dx, strip),
                                at(args_.dx, position));
  }

 private:
  static NormGradientCoefficients constant_statistics(NormGradientCoefficients coefficients) {
    for (int lane = 0; lane < kMaxLanes; ++lane) {
      coefficients.mean_g[lane] = 0;
      coefficients.projection[lane] = 0;
    }
    return coefficients;
  }

  NormGradient source(const std::array<ConstView, 2>& dy, const ConstView& mask, const Strip& strip,
                      std::int64_t position) const {
    return {{at(dy[0], position), at(dy[1], position)},
            mask ? mask.as<std::uint8_t>() + position / 8 : nullptr,
            at(args_.x, position),
            args_.mean.as<float>() + strip.channel};
  }

  const BatchNormBackward& args_;
  const Work& work_;
  std::array<ConstView, 2> upstream_;
  ConstView mask_;
  View dresidual_;
  std::optional<Scratch<std::byte>> own_;
};

/// The sums over the group's batch, from this rank's.
double exchanged_sums(CpuContext& context, const StatisticsExchange& exchange, const Work& work,
                      std::int64_t channels, Scratch<LaneGradientSums>& strip_sums) {
  Scratch<float> sums(context, 2 * channels);
  for (std::int64_t s = 0; s < work.strips().count(); ++s) {
    const Strip strip = work.strips()[s];
    for (int lane = 0; lane < strip.lanes; ++lane) {
      sums[strip.channel + lane] = static_cast<float>(strip_sums[s].g[lane]);
      sums[channels + strip.channel + lane] = static_cast<float>(strip_sums[s].gx[lane]);
    }
  }
  const double count = exchange.add_sums({sums.data(), DType::f32, {2, channels}},
                                         static_cast<double>(work.values_per_channel()));
  for (std::int64_t s = 0; s < work.strips().count(); ++s) {
    const Strip strip = work.strips()[s];
    for (int lane = 0; lane < strip.lanes; ++lane) {
      strip_sums[s].g[lane] = double{sums[strip.channel + lane]};
      strip_sums[s].gx[lane] = double{sums[channels + strip.channel + lane]};
    }
  }
  return count;
}

}  // namespace

void batch_norm_backward(CpuContext& context, const BatchNormBackward& args,
                         const StatisticsExchange& exchange) {
  if (args.dy[0].shape[1] == 0) return;
  const Work work(context, args.dy[0]);
  const Backward backward(context, args, work);
  const std::int64_t images = work.strips().images();
  const bool shared = exchange && args.batch_statistics;
  const bool with_sums = backward.needs_sums();
  auto count = static_cast<double>(work.values_per_channel());

  if (!shared && work.enough_strips()) {
    work.for_each_strip([&](std::int64_t, const Strip& strip) {
      LaneGradientSums total;
      for (std::int64_t n = 0; with_sums && n < images; ++n) {
        add(total, backward.sums(strip, n), strip.lanes);
      }
      if (with_sums) backward.write_affine(strip, total);
      for (std::int64_t n = 0; n < images; ++n) backward.write_dx(strip, n, total, count);
    });
    return;
  }
  Scratch<LaneGradientSums> by_strip(context, work.strips().count());
  for (std::int64_t s = 0; s < work.strips().count(); ++s) by_strip[s] = {};
  if (with_sums) {
    Scratch<LaneGradientSums> by_slice(context, work.slices());
    work.for_each_slice([&](std::int64_t s, const Strip& strip, std::int64_t image) {
      by_slice[s * images + image] = backward.sums(strip, image);
    });
    for (std::int64_t s = 0; s < work.strips().count(); ++s) {
      const Strip strip = work.strips()[s];
      for (std::int64_t n = 0; n < images; ++n)
        add(by_strip[s], by_slice[s * images + n], strip.lanes);
      backward.write_affine(strip, by_strip[s]);
    }
    if (shared) count = exchanged_sums(context, exchange, work, args.dy[0].shape[1], by_strip);
  }
  work.for_each_slice([&](std::int64_t s, const Strip& strip, std::int64_t image) {
    backward.write_dx(strip, image, by_strip[s], count);
  });
}

}  // namespace collar::kernels
