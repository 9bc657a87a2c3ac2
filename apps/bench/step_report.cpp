// SPDX-License-Identifier: Apache-2.0
// What `collar bench step` shows: a table for people, JSON for programs.
#include <fmt/format.h>

#include <vector>

#include "apps/bench/step.hpp"
#include "apps/counted.hpp"

namespace collar::apps::bench {

nlohmann::ordered_json to_json(const StepOptions& options, const StepMeasurement& m) {
  const double images = static_cast<double>(options.batch_size) * m.processes;
  return {{"bench", "step"},
          {"model", options.model},
          {"img_size", options.img_size},
          {"batch_size", options.batch_size},
          {"processes", m.processes},
          {"freeze", options.freeze},
          {"precision", options.precision},
          {"threads", m.threads},
          {"isa", m.isa},
          {"library", m.library},
          {"steps", options.steps},
          {"images_per_second", images / m.step_seconds},
          {"images_per_second_best", images / m.fastest_step_seconds},
          {"step_seconds", m.step_seconds},
          {"phase_seconds", m.phase_seconds},
          {"kind_seconds", m.kind_seconds},
          {"convolution_gflop", m.convolution_flops * 1e-9},
          {"convolutions_alone_seconds", m.convolutions_alone_seconds},
          {"convolutions_alone_images_per_second", images / m.convolutions_alone_seconds},
          {"share_of_convolutions_alone", m.share_of_convolutions_alone},
          {"peak_gflops", m.peak_gflops},
          {"share_of_peak", m.share_of_peak},
          {"layout_conversions", m.layout_conversions},
          {"layout_conversion_bytes", m.layout_conversion_bytes},
          {"system_allocations", m.system_allocations},
          {"peak_bytes", m.peak_bytes},
          {"layouts", m.layouts}};
}

std::string to_text(const StepOptions& options, const StepMeasurement& m) {
  const double images = static_cast<double>(options.batch_size) * m.processes;
  std::string text = fmt::format(
      "{}, {} px, {}{}, {}, {}; {}, {}, {}\n\n", options.model, options.img_size,
      counted(options.batch_size, "image"),
      m.processes == 1 ? "" : " in each of " + counted(m.processes, "process"), options.precision,
      options.freeze == "backbone" ? "backbone frozen" : "all trained",
      counted(m.threads, "thread"), m.isa, m.library);
  const auto line = [&](std::string_view name, double seconds, const std::string& remark) {
    text += fmt::format("{:<22}{:>9.1f} ms  {}\n", name, seconds * 1e3, remark);
  };
  const auto share = [&](double seconds) {
    return fmt::format("{:>5.1f} %", 100 * seconds / m.step_seconds);
  };
  line("training step", m.step_seconds,
       fmt::format("{:.2f} img/s, median of {} (best {:.2f})", images / m.step_seconds,
                   options.steps, images / m.fastest_step_seconds));
  line("convolutions alone", m.convolutions_alone_seconds,
       fmt::format("{:.2f} img/s; the step reaches {:.0f} % of them",
                   images / m.convolutions_alone_seconds, 100 * m.share_of_convolutions_alone));
  text += fmt::format(
      "{:<22}{:>9.0f} GFLOP/s; the step's {:.0f} GFLOP of convolution are {:.0f} % of it\n\n",
      "multiply-add peak", m.peak_gflops, m.convolution_flops * 1e-9, 100 * m.share_of_peak);
  for (const char* phase : {"forward", "backward", "optimizer"}) {
    line(phase, m.phase_seconds.at(phase), share(m.phase_seconds.at(phase)));
  }
  text += "\n";
  for (const char* kind : {"convolution", "batch_norm", "pooling", "optimizer", "other"}) {
    line(kind, m.kind_seconds.at(kind), share(m.kind_seconds.at(kind)));
  }
  text += fmt::format(
      "\nin a step: {:.0f} layout conversions ({:.1f} MB), {:.1f} allocations from the system\n",
      m.layout_conversions, m.layout_conversion_bytes * 1e-6, m.system_allocations);
  std::vector<std::string> layouts;
  for (const auto& [layout, count] : m.layouts)
    layouts.push_back(fmt::format("{} {}", count, layout));
  text += fmt::format("convolutions write: {}; at most {:.2f} GB in tensors\n",
                      fmt::join(layouts, ", "), static_cast<double>(m.peak_bytes) * 1e-9);
  return text;
}

}  // namespace collar::apps::bench
