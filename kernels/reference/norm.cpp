// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/norm.hpp"

#include <cmath>
#include <vector>

#include "kernels/core/element.hpp"
#include "kernels/core/image_index.hpp"

namespace collar::kernels::reference {
namespace {

using Positions = std::vector<std::int64_t>;

/// Where the elements of a channel lie.
Positions channel_positions(const ConstView& x, std::int64_t channel) {
  Positions positions;
  if (x.shape.rank() == 2) {
    for (std::int64_t n = 0; n < x.shape[0]; ++n) positions.push_back(n * x.shape[1] + channel);
    return positions;
  }
  const ImageIndex index(x.shape, x.layout);
  for (std::int64_t n = 0; n < x.shape[0]; ++n) {
    for (std::int64_t h = 0; h < x.shape[2]; ++h) {
      for (std::int64_t w = 0; w < x.shape[3]; ++w) positions.push_back(index(n, channel, h, w));
    }
  }
  return positions;
}

double channel_value(const ConstView& view, std::int64_t channel, double otherwise) {
  return view ? double{read_float(view, channel)} : otherwise;
}

bool mask_bit(const ConstView& mask, std::int64_t i) {
  return (mask.as<std::uint8_t>()[i / 8] >> i % 8 & 1) != 0;
}

void set_mask_bit(const View& mask, std::int64_t i, bool bit) {
  std::uint8_t& byte = mask.as<std::uint8_t>()[i / 8];
  const auto flag = static_cast<std::uint8_t>(1u << i % 8);
  byte = static_cast<std::uint8_t>(bit ? byte | flag : byte & ~flag);
}

template <typename Args>
void normalise(const Args& args, std::int64_t channel, double mean, double inv_std) {
  const double weight = channel_value(args.weight, channel, 1);
  const double bias = channel_value(args.bias, channel, 0);
  for (const std::int64_t i : channel_positions(args.x, channel)) {
    double z = (double{read_float(args.x, i)} - mean) * inv_std * weight + bias;
    if (args.residual) z += double{read_float(args.residual, i)};
    if (args.relu && z < 0) z = 0;
    write_float(args.y, i, static_cast<float>(z));
    if (args.mask) set_mask_bit(args.mask, i, !(read_float(args.y, i) <= 0));
  }
}

}  // namespace

void batch_norm_training(const BatchNormTraining& args) {
  for (std::int64_t c = 0; c < args.x.shape[1]; ++c) {
    const Positions positions = channel_positions(args.x, c);
    const auto count = static_cast<double>(positions.size());
    double mean = 0;
    for (const std::int64_t i : positions) mean += double{read_float(args.x, i)} / count;
    double m2 = 0;
    for (const std::int64_t i : positions) m2 += std::pow(double{read_float(args.x, i)} - mean, 2);
    const double inv_std = 1 / std::sqrt(m2 / count + args.epsilon);
    write_float(args.mean, c, static_cast<float>(mean));
    write_float(args.inv_std, c, static_cast<float>(inv_std));
    const double keep = 1 - args.momentum;
    if (args.running_mean) {
      const double old = double{read_float(args.running_mean, c)};
      write_float(args.running_mean, c, static_cast<float>(keep * old + args.momentum * mean));
    }
    if (args.running_var) {
      const double old = double{read_float(args.running_var, c)};
      const double unbiased = m2 / (count - 1);
      write_float(args.running_var, c, static_cast<float>(keep * old + args.momentum * unbiased));
    }
    normalise(args, c, mean, inv_std);
  }
}

void batch_norm_inference(const BatchNormInference& args) {
  for (std::int64_t c = 0; c < args.x.shape[1]; ++c) {
    const double inv_std = 1 / std::sqrt(double{read_float(args.var, c)} + args.epsilon);
    if (args.inv_std) write_float(args.inv_std, c, static_cast<float>(inv_std));
    normalise(args, c, double{read_float(args.mean, c)}, inv_std);
  }
}

void batch_norm_backward(const BatchNormBackward& args) {
  const View g_type{nullptr, args.dy[0].dtype, {1}};
  const auto upstream = [&](std::int64_t i) {
    if (args.mask && !mask_bit(args.mask, i)) return 0.0;
    float sum = read_float(args.dy[0], i);
    if (args.dy[1]) sum += read_float(args.dy[1], i);
    if (g_type.dtype == DType::bf16) sum = static_cast<float>(bfloat16(sum));
    return double{sum};
  };
  for (std::int64_t c = 0; c < args.dy[0].shape[1]; ++c) {
    const Positions positions = channel_positions(args.dy[0], c);
    const auto count = static_cast<double>(positions.size());
    const double mean = double{read_float(args.mean, c)};
    const double inv_std = double{read_float(args.inv_std, c)};
    const double weight = channel_value(args.weight, c, 1);
    std::vector<double> g;
    for (const std::int64_t i : positions) g.push_back(upstream(i));
    const auto normalised = [&](std::int64_t i) {
      return args.x ? (double{read_float(args.x, i)} - mean) * inv_std : 0.0;
    };
    double dbias = 0;
    double dweight = 0;
    for (std::size_t k = 0; k < g.size(); ++k) {
      dbias += g[k];
      dweight += g[k] * normalised(positions[k]);
    }
    for (std::size_t k = 0; k < g.size(); ++k) {
      const std::int64_t i = positions[k];
      const double centred = g[k] - (dbias + normalised(i) * dweight) / count;
      const double dx = weight * inv_std * (args.batch_statistics ? centred : g[k]);
      if (args.dx) write_float(args.dx, i, static_cast<float>(dx));
      if (args.dresidual) write_float(args.dresidual, i, static_cast<float>(g[k]));
    }
    const auto put = [&](const View& gradient, double value) {
      if (!gradient) return;
      const double old = args.accumulate_affine ? double{read_float(gradient, c)} : 0;
      write_float(gradient, c, static_cast<float>(old + value));
    };
    put(args.dweight, dweight);
    put(args.dbias, dbias);
  }
}

}  // namespace collar::kernels::reference
