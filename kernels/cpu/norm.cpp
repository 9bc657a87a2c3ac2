// SPDX-License-Identifier: Apache-2.0
// The forward passes of batch normalisation.
#include "kernels/norm.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/core/error.hpp"
#include "kernels/cpu/norm_work.hpp"
#include "kernels/cpu/scratch.hpp"

namespace collar::kernels {
namespace {

void merge(LaneMoments& total, const LaneMoments& more, int lanes) {
  const MomentsMerge merged(total.count, more.count);
  for (int lane = 0; lane < lanes; ++lane) {
    merged(total.mean[lane], total.m2[lane], more.mean[lane], more.m2[lane]);
  }
  total.count += more.count;
}

float inverse_deviation(double variance, double epsilon) {
  return static_cast<float>(1.0 / std::sqrt(variance + epsilon));
}

/// Writes what a channel's moments determine; the running statistics move as PyTorch's do.
void finish_channel(const BatchNormTraining& args, std::int64_t channel, double mean, double m2,
                    double count) {
  const double squares = m2 < 0 ? 0 : m2;  // rounding may leave a tiny negative number
  args.mean.as<float>()[channel] = static_cast<float>(mean);
  args.inv_std.as<float>()[channel] = inverse_deviation(squares / count, args.epsilon);
  const auto move = [&](const View& running, double value) {
    if (!running) return;
    float& kept = running.as<float>()[channel];
    kept = static_cast<float>(args.momentum * value + (1 - args.momentum) * double{kept});
  };
  move(args.running_mean, mean);
  move(args.running_var, squares / (count - 1));
}

/// y of one slice, from statistics that are known; Args is training's or inference's.
template <typename Args>
void normalise_slice(const Work& work, const Args& args, const float* mean, const float* inv_std,
                     const Strip& strip, std::int64_t image) {
  float scale[kMaxLanes];
  float shift[kMaxLanes];
  for (int lane = 0; lane < strip.lanes; ++lane) {
    const std::int64_t channel = strip.channel + lane;
    scale[lane] = inv_std[channel] * value_or(args.weight, channel, 1.0f);
    shift[lane] = value_or(args.bias, channel, 0.0f);
  }
  const std::int64_t position = work.position(strip, image);
  std::uint8_t* mask = args.mask && work.byte_aligned()
                           ? args.mask.template as<std::uint8_t>() + position / 8
                           : nullptr;
  work.loops().norm.normalise(
      work.run(strip),
      {at(args.x, position), at(args.residual, position), at(args.y, position), mask,
       mean + strip.channel, scale, shift, args.relu, work.streams(args.y, strip)});
}

/// The mask of layouts in which strips share bytes of it, in a pass of its own.
void write_unaligned_mask(CpuContext& context, const Work& work, const View& y, const View& mask) {
  if (!mask || work.byte_aligned()) return;
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    work.loops().pointwise.passing(y.dtype, end - begin, at(y, begin),
                                   mask.as<std::uint8_t>() + begin / 8);
  });
}

/// The moments of the group's batch, from this rank's.
double exchanged_moments(CpuContext& context, const BatchNormTraining& args,
                         const StatisticsExchange& exchange, const Work& work,
                         Scratch<LaneMoments>& strip_moments) {
  const std::int64_t channels = args.x.shape[1];
  Scratch<float> mean(context, channels);
  Scratch<float> m2(context, channels);
  for (std::int64_t s = 0; s < work.strips().count(); ++s) {
    const Strip strip = work.strips()[s];
    for (int lane = 0; lane < strip.lanes; ++lane) {
      mean[strip.channel + lane] = static_cast<float>(strip_moments[s].mean[lane]);
      m2[strip.channel + lane] = static_cast<float>(strip_moments[s].m2[lane]);
    }
  }
  const double count = exchange.merge_moments({mean.data(), DType::f32, {channels}},
                                              {m2.data(), DType::f32, {channels}},
                                              static_cast<double>(work.values_per_channel()));
  if (count < 2) {
    throw ShapeError(fmt::format(
        "batch_norm: expected more than 1 value per channel when training, the ranks have {}",
        count));
  }
  for (std::int64_t s = 0; s < work.strips().count(); ++s) {
    const Strip strip = work.strips()[s];
    for (int lane = 0; lane < strip.lanes; ++lane) {
      strip_moments[s].mean[lane] = double{mean[strip.channel + lane]};
      strip_moments[s].m2[lane] = double{m2[strip.channel + lane]};
    }
  }
  return count;
}

}  // namespace

void batch_norm_training(CpuContext& context, const BatchNormTraining& args,
                         const StatisticsExchange& exchange) {
  // A rank whose batch is empty still takes part in the exchange.
  if (args.x.shape[1] == 0 || (args.x.numel() == 0 && !exchange)) return;
  const Work work(context, args.x);
  const std::int64_t images = work.strips().images();
  const auto moments_of = [&](const Strip& strip, std::int64_t image) {
    LaneMoments moments;
    work.loops().norm.moments(work.run(strip), at(args.x, work.position(strip, image)), moments);
    return moments;
  };
  const auto finish = [&](const Strip& strip, const LaneMoments& moments) {
    for (int lane = 0; lane < strip.lanes; ++lane) {
      finish_channel(args, strip.channel + lane, moments.mean[lane], moments.m2[lane],
                     moments.count);
    }
  };
  const auto normalise = [&](const Strip& strip, std::int64_t image) {
    normalise_slice(work, args, args.mean.as<float>(), args.inv_std.as<float>(), strip, image);
  };

  if (!exchange && work.enough_strips()) {
    work.for_each_strip([&](std::int64_t, const Strip& strip) {
      LaneMoments total;
      for (std::int64_t n = 0; n < images; ++n) merge(total, moments_of(strip, n), strip.lanes);
      finish(strip, total);
      for (std::int64_t n = 0; n < images; ++n) normalise(strip, n);
    });
  } else {
    Scratch<LaneMoments> by_slice(context, work.slices());
    work.for_each_slice([&](std::int64_t s, const Strip& strip, std::int64_t image) {
      by_slice[s * images + image] = moments_of(strip, image);
    });
    Scratch<LaneMoments> by_strip(context, work.strips().count());
    for (std::int64_t s = 0; s < work.strips().count(); ++s) {
      by_strip[s] = {};
      for (std::int64_t n = 0; n < images; ++n) {
        merge(by_strip[s], by_slice[s * images + n], work.strips()[s].lanes);
      }
    }
    const double count =
        exchange ? exchanged_moments(context, args, exchange, work, by_strip) : by_strip[0].count;
    for (std::int64_t s = 0; s < work.strips().count(); ++s) {
      by_strip[s].count = count;
      finish(work.strips()[s], by_strip[s]);
    }
    work.for_each_slice(
        [&](std::int64_t, const Strip& strip, std::int64_t image) { normalise(strip, image); });
  }
  write_unaligned_mask(context, work, args.y, args.mask);
}

void batch_norm_inference(CpuContext& context, const BatchNormInference& args) {
  if (args.x.shape[1] == 0) return;
  const Work work(context, args.x);
  const std::int64_t channels = args.x.shape[1];
  Scratch<float> own(context, channels);
  float* inv_std = args.inv_std ? args.inv_std.as<float>() : own.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    inv_std[c] = inverse_deviation(double{args.var.as<float>()[c]}, args.epsilon);
  }
  work.for_each_slice([&](std::int64_t, const Strip& strip, std::int64_t image) {
    normalise_slice(work, args, args.mean.as<float>(), inv_std, strip, image);
  });
  write_unaligned_mask(context, work, args.y, args.mask);
}

}  // namespace collar::kernels
