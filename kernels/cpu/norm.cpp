// SPDX-License-Identifier: Apache-2.0
// The forward passes of batch normalisation.
#include "kernels/norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

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
       mean + strip.channel, scale, shift, args.relu, work.stores_non_temporal(args.y, strip)});
}

/// The mask of layouts in which strips share bytes of it, in a pass of its own.
void write_unaligned_mask(CpuContext& context, const Work& work, const View& y, const View& mask) {
  if (!mask || work.byte_aligned()) return;
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    work.loops().pointwise.passing(y.dtype, end - begin, at(y, begin),
                                   mask.as<std::uint8_t>() + begin / 8);
  });
}

/// Turns this rank's moments of all strips into the group's.
void exchange_moments(CpuContext& context, const BatchNormTraining& args,
                      const StatisticsExchange& exchange, const Work& work,
                      std::span<LaneMoments> moments) {
  const std::int64_t channels = args.x.shape[1];
  Scratch<float> mean(context, channels);
  Scratch<float> m2(context, channels);
  const auto for_each_lane = [&](const auto& body) {
    for (std::size_t s = 0; s < moments.size(); ++s) {
      const Strip strip = work.strips()[static_cast<std::int64_t>(s)];
      for (int lane = 0; lane < strip.lanes; ++lane) body(moments[s], lane, strip.channel + lane);
    }
  };
  for_each_lane([&](const LaneMoments& own, int lane, std::int64_t channel) {
    mean[channel] = static_cast<float>(own.mean[lane]);
    m2[channel] = static_cast<float>(own.m2[lane]);
  });
  const double count = exchange.merge_moments({mean.data(), DType::f32, {channels}},
                                              {m2.data(), DType::f32, {channels}},
                                              static_cast<double>(work.values_per_channel()));
  if (count < 2) {
    throw ShapeError(fmt::format(
        "batch_norm: expected more than 1 value per channel when training, the ranks have {}",
        count));
  }
  for_each_lane([&](LaneMoments& merged, int lane, std::int64_t channel) {
    merged.count = count;
    merged.mean[lane] = double{mean[channel]};
    merged.m2[lane] = double{m2[channel]};
  });
}

}  // namespace

void batch_norm_training(CpuContext& context, const BatchNormTraining& args,
                         const StatisticsExchange& exchange) {
  // A rank whose batch is empty still takes part in the exchange.
  if (args.x.shape[1] == 0 || (args.x.numel() == 0 && !exchange)) return;
  const Work work(context, args.x);
  const auto moments_of = [&](const Strip& strip, std::int64_t image) {
    LaneMoments moments;
    work.loops().norm.moments(work.run(strip), at(args.x, work.position(strip, image)), moments);
    return moments;
  };
  const auto finish = [&](std::int64_t first, std::span<LaneMoments> moments) {
    if (exchange) exchange_moments(context, args, exchange, work, moments);
    for (std::size_t s = 0; s < moments.size(); ++s) {
      const Strip strip = work.strips()[first + static_cast<std::int64_t>(s)];
      for (int lane = 0; lane < strip.lanes; ++lane) {
        finish_channel(args, strip.channel + lane, moments[s].mean[lane], moments[s].m2[lane],
                       moments[s].count);
      }
    }
  };
  const auto normalise = [&](const Strip& strip, std::int64_t image, const LaneMoments&) {
    normalise_slice(work, args, args.mean.as<float>(), args.inv_std.as<float>(), strip, image);
  };
  work.in_two_passes<LaneMoments>(context, !exchange, moments_of, merge, finish, normalise);
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
