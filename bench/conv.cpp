// SPDX-License-Identifier: Apache-2.0
// How fast is each convolution of a ResNet-50d, and what does the network's whole set allow?
//   bench_conv --batch 16 --threads 2 --precision f32 [--isa avx2] [--direct]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include "bench/resnet50d.hpp"
#include "kernels/core/error.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/cpu/primitives.hpp"

namespace {

using namespace collar;

struct Options {
  std::int64_t batch = 16;
  std::int64_t image_size = 224;
  int steps = 5;
  std::string precision = "f32";
  std::string isa{name_of(detect_isa())};
  CpuOptions cpu;
};

std::string rate(double flops, double seconds) {
  return seconds > 0.0 ? fmt::format("{:.0f}", flops / seconds / 1e9) : "-";
}

void report(const Options& options) {
  const DType dtype = dtype_from_name(options.precision);
  CpuContext context(options.cpu);
  const double peak = kernels::measure_peak_gflops(context, dtype);
  fmt::print("{}, {}, {} threads, batch {}; peak {:.0f} GFLOP/s {}, triad {:.1f} GB/s\n\n",
             kernels::CpuPrimitives::description(), name_of(context.isa()), context.threads(),
             options.batch, peak, options.precision, kernels::measure_triad_gbs(context));

  const auto list = bench::resnet50d_convolutions(options.batch, options.image_size);
  const auto measured = kernels::measure_convolutions(context, list, dtype, true, options.steps);
  fmt::print("| convolution | n | forward | data | weights | GF/s\n|---|---|---|---|---|\n");
  double flops = 0.0;
  double backward_flops = 0.0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& work = list[i];
    const auto& times = measured.each[i];
    const double work_flops = work.count * kernels::conv2d_flops(work);
    flops += work_flops;
    backward_flops += work_flops * (work.needs_dx ? 2 : 1);
    fmt::print("| {}x{} {}->{} k{} s{} | {} | {} | {} | {} |\n", work.x[2], work.x[3], work.x[1],
               work.w[0], work.w[2], work.geometry.stride[0], work.count,
               rate(work_flops, times.forward), rate(work_flops, times.data),
               rate(work_flops, times.weights));
  }
  const auto& step = measured.step;
  const auto batch = static_cast<double>(options.batch);
  fmt::print("| all | | {} | {} | {} |\n\n", rate(flops, step.forward), rate(flops, step.data),
             rate(flops, step.weights));
  fmt::print("ms/image: forward {:.1f}, data {:.1f}, weights {:.1f}\n", step.forward / batch * 1e3,
             step.data / batch * 1e3, step.weights / batch * 1e3);
  fmt::print(
      "convolutions alone: forward {:.1f} img/s ({:.0f} % of peak), training {:.2f} img/s "
      "({:.0f} % of peak)\n",
      batch / step.forward, flops / step.forward / 1e7 / peak, batch / measured.step_seconds,
      (flops + backward_flops) / measured.step_seconds / 1e7 / peak);
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("Convolutions of a ResNet-50d");
  app.add_option("-b,--batch", options.batch, "Images")->check(CLI::Range(1, 1024));
  app.add_option("--img-size", options.image_size, "Pixels")->check(CLI::Range(32, 1024));
  app.add_option("--steps", options.steps, "Timed steps")->check(CLI::Range(1, 1000));
  app.add_option("--precision", options.precision, "f32 or bf16");
  app.add_option("--isa", options.isa, "baseline, avx2, avx512 or avx512_bf16");
  app.add_option("--threads", options.cpu.threads, "Threads; 0: all CPUs");
  app.add_flag("--direct", options.cpu.direct_convolutions, "No Winograd");
  CLI11_PARSE(app, argc, argv);
  options.cpu.isa = isa_from_name(options.isa);
  report(options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_conv: {}\n", error.what());
  return 7;
}
