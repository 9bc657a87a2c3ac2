// SPDX-License-Identifier: Apache-2.0
// How fast is a training step, and what keeps it from being as fast as its convolutions? Runs real
// steps through the Accelerator on random images, and beside them, in turn, the convolutions of the
// same model alone: on a busy or throttled machine their ratio stays while both speeds move.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace collar::apps::bench {

struct StepOptions {
  std::string model = "resnet50d";
  int img_size = 224;   ///< height and width, pixels
  int batch_size = 16;  ///< of each process
  int num_classes = 37;
  std::string freeze = "none";  ///< or "backbone"
  std::string precision = "f32";
  int threads = 0;  ///< of each process; 0: its share of the CPUs
  int steps = 12;   ///< timed, after those that warm up
};

/// Seconds are medians over the steps; the shares are medians over the rounds in which steps and
/// convolutions take turns.
struct StepMeasurement {
  int processes = 1;
  int threads = 1;  ///< of each process
  std::string isa;
  std::string library;  ///< of the convolutions
  double step_seconds = 0;
  double fastest_step_seconds = 0;
  std::map<std::string, double> phase_seconds{};  ///< forward, backward, optimizer
  std::map<std::string, double> kind_seconds{};  ///< convolution, batch_norm, …; sum up to a step
  double convolution_flops = 0;                  ///< of a step; direct, whatever was computed
  double convolutions_alone_seconds = 0;
  double share_of_convolutions_alone = 0;
  double peak_gflops = 0;
  double share_of_peak = 0;       ///< convolution_flops by step_seconds, of the peak
  double layout_conversions = 0;  ///< in a step
  double layout_conversion_bytes = 0;
  double system_allocations = 0;
  std::size_t peak_bytes = 0;            ///< in tensors and scratch memory
  std::map<std::string, int> layouts{};  ///< convolutions by the layout of what they write
};

/// Every process of a job calls it. Throws UsageError for an unknown model.
StepMeasurement measure_step(const StepOptions& options);

/// Keys are stable: scripts compare runs by them.
nlohmann::ordered_json to_json(const StepOptions& options, const StepMeasurement& measured);
std::string to_text(const StepOptions& options, const StepMeasurement& measured);

}  // namespace collar::apps::bench
