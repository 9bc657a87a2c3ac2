// SPDX-License-Identifier: Apache-2.0
// How close is batch normalisation to the speed of memory? Times the layers of a ResNet-50d,
// forward and backward with ReLU, mask and residual where the network has them, and sets the bytes
// that have to move once against a sum of two arrays in the same run.
//   bench_norm [--threads 2] [--batch 16] [--bf16] [--isa avx2]
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cpu/scratch.hpp"
#include "kernels/norm.hpp"
#include "kernels/pointwise.hpp"

using namespace collar;

namespace {

/// Seconds of a call: the fastest of several, which a busy machine disturbs least.
double seconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const auto begin = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

/// GB/s of a = b + c over 64 MiB arrays, the line fetched before a store not counted.
double array_sum(CpuContext& context) {
  constexpr std::int64_t n = 1 << 24;
  kernels::Scratch<float> memory(context, 3 * n);
  const auto array = [&](int i) { return View{memory.data() + i * n, DType::f32, {n}}; };
  for (int i = 0; i < 3; ++i) kernels::fill(context, array(i), 1);
  const double time = seconds(
      [&] { kernels::binary(context, kernels::BinaryOp::add, array(1), array(2), array(0)); });
  return 3.0 * sizeof(float) * double{n} / time / 1e9;
}

/// A normalisation as it occurs in a ResNet-50d at 224 pixels.
struct Layer {
  std::int64_t channels;
  std::int64_t extent;
  int occurrences;
  bool relu;
  bool residual;
};
const std::vector<Layer> kLayers{
    {32, 112, 2, true, false},   {64, 112, 1, true, false},  {64, 56, 6, true, false},
    {256, 56, 3, true, true},    {256, 56, 1, false, false}, {128, 56, 1, true, false},
    {128, 28, 7, true, false},   {512, 28, 4, true, true},   {512, 28, 1, false, false},
    {256, 28, 1, true, false},   {256, 14, 11, true, false}, {1024, 14, 6, true, true},
    {1024, 14, 1, false, false}, {512, 14, 1, true, false},  {512, 7, 5, true, false},
    {2048, 7, 3, true, true},    {2048, 7, 1, false, false}};

struct Timing {
  double forward_seconds;
  double forward_bytes;
  double backward_seconds;
  double backward_bytes;
};

Timing time_layer(CpuContext& context, const Layer& layer, std::int64_t batch, DType dtype) {
  const Shape shape{batch, layer.channels, layer.extent, layer.extent};
  const Layout layout = context.preferred_layout(layer.channels);
  const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * shape.numel();
  kernels::Scratch<std::byte> memory(context, 7 * bytes);
  const auto tensor = [&](int i) { return View{memory.data() + i * bytes, dtype, shape, layout}; };
  for (int i = 0; i < 7; ++i) kernels::fill(context, tensor(i), 0.5 + i);
  kernels::Scratch<std::uint8_t> bits(context, shape.numel() / 8);
  kernels::Scratch<float> per_channel(context, 8 * layer.channels);
  const auto channels = [&](int i) {
    return View{per_channel.data() + i * layer.channels, DType::f32, {layer.channels}};
  };
  for (int i = 0; i < 8; ++i) kernels::fill(context, channels(i), 1);

  kernels::BatchNormTraining forward;
  forward.x = tensor(0);
  if (layer.residual) forward.residual = tensor(1);
  forward.y = tensor(2);
  if (layer.relu) forward.mask = {bits.data(), DType::u8, {shape.numel() / 8}};
  forward.weight = channels(0);
  forward.bias = channels(1);
  forward.mean = channels(2);
  forward.inv_std = channels(3);
  forward.running_mean = channels(4);
  forward.running_var = channels(5);
  forward.relu = layer.relu;

  kernels::BatchNormBackward backward;
  backward.dy[0] = tensor(3);
  if (layer.residual) backward.dy[1] = tensor(4);
  backward.x = tensor(0);
  backward.weight = channels(0);
  backward.mean = channels(2);
  backward.inv_std = channels(3);
  backward.mask = forward.mask;
  backward.dx = tensor(5);
  if (layer.residual) backward.dresidual = tensor(6);
  backward.dweight = channels(6);
  backward.dbias = channels(7);

  const double mask_bytes = layer.relu ? static_cast<double>(shape.numel()) / 8 : 0;
  const auto moved = [&](int tensors) { return tensors * static_cast<double>(bytes) + mask_bytes; };
  return {seconds([&] { kernels::batch_norm_training(context, forward, {}); }),
          moved(layer.residual ? 3 : 2),
          seconds([&] { kernels::batch_norm_backward(context, backward, {}); }),
          moved(layer.residual ? 5 : 3)};
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  std::int64_t batch = 16;
  bool bf16 = false;
  std::string isa(name_of(detect_isa()));
  CLI::App app{"Batch normalisation against the speed of memory"};
  app.add_option("--threads", threads, "0: all CPUs");
  app.add_option("--batch", batch, "images");
  app.add_flag("--bf16", bf16, "activations in bf16");
  app.add_option("--isa", isa, "baseline, avx2, avx512, avx512_bf16");
  CLI11_PARSE(app, argc, argv);
  CpuContext context({.threads = threads, .isa = isa_from_name(isa)});
  const DType dtype = bf16 ? DType::bf16 : DType::f32;

  fmt::print("{} threads, {}, {}, batch {}\n", context.threads(), isa, name_of(dtype), batch);
  const double memory = array_sum(context);
  fmt::print("array sum {:.1f} GB/s\n\n{:>22} {:>3} {:>11} {:>6} {:>11} {:>6}\n", memory, "layer",
             "n", "forward ms", "GB/s", "backward ms", "GB/s");
  Timing sum{};
  for (const Layer& layer : kLayers) {
    const Timing t = time_layer(context, layer, batch, dtype);
    const double n = layer.occurrences;
    sum.forward_seconds += n * t.forward_seconds;
    sum.forward_bytes += n * t.forward_bytes;
    sum.backward_seconds += n * t.backward_seconds;
    sum.backward_bytes += n * t.backward_bytes;
    fmt::print("{:>22} {:>3} {:>11.2f} {:>6.1f} {:>11.2f} {:>6.1f}\n",
               fmt::format("{}x{}x{}{}{}", layer.channels, layer.extent, layer.extent,
                           layer.residual ? " +r" : "", layer.relu ? " relu" : ""),
               layer.occurrences, t.forward_seconds * 1e3,
               t.forward_bytes / t.forward_seconds / 1e9, t.backward_seconds * 1e3,
               t.backward_bytes / t.backward_seconds / 1e9);
  }
  const auto images = static_cast<double>(batch);
  fmt::print(
      "\nwhole network: forward {:.2f} ms an image at {:.2f} x array sum, backward {:.2f} ms at "
      "{:.2f} x array sum\n",
      sum.forward_seconds * 1e3 / images, sum.forward_bytes / sum.forward_seconds / 1e9 / memory,
      sum.backward_seconds * 1e3 / images,
      sum.backward_bytes / sum.backward_seconds / 1e9 / memory);
}
