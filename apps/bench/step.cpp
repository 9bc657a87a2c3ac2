// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "apps/accelerate/accelerator.hpp"
#include "engine/ops/loss.hpp"
#include "engine/random.hpp"
#include "kernels/cpu/convolution_benchmark.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/cpu/primitives.hpp"
#include "nn/nn.hpp"

namespace collar::apps::bench {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::median;

constexpr int kWarmUpSteps = 3;
constexpr int kRounds = 4;

double seconds_of(const std::function<void()>& call) {
  const auto begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What is known of one step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  KernelTimes kernels{};

  double total() const { return forward + backward + optimizer; }
};

/// Applies `value` to every step and takes the median.
template <typename Value>
double median_of(const std::vector<StepTimes>& steps, const Value& value) {
  std::vector<double> values;
  for (const StepTimes& step : steps) values.push_back(value(step));
  return median(std::move(values));
}

/// The convolutions of a model, noted as they run.
class ConvolutionList {
 public:
  explicit ConvolutionList(nn::Module& model) : model_(model) {
    for_each_convolution([this](nn::Conv2d& layer) {
      layer.set_forward_hook([this, &layer](const Tensor& x, const Tensor& y) {
        list_.push_back({.x = x.shape(),
                         .w = layer.weight().shape(),
                         .geometry = layer.geometry(),
                         .needs_dx = x.requires_grad()});
        ++layouts_[std::string(name_of(y.layout()))];
      });
    });
  }
  ~ConvolutionList() {
    for_each_convolution([](nn::Conv2d& layer) { layer.set_forward_hook(nullptr); });
  }
  ConvolutionList(const ConvolutionList&) = delete;
  ConvolutionList& operator=(const ConvolutionList&) = delete;

  const std::vector<kernels::ConvolutionWork>& list() const { return list_; }
  const std::map<std::string, int>& layouts() const { return layouts_; }

 private:
  template <typename Visit>
  void for_each_convolution(const Visit& visit) {
    model_.for_each_module([&](nn::Module& module, const std::string&) {
      if (auto* layer = dynamic_cast<nn::Conv2d*>(&module)) visit(*layer);
    });
  }

  nn::Module& model_;
  std::vector<kernels::ConvolutionWork> list_;
  std::map<std::string, int> layouts_;
};

Tensor random_images(std::int64_t batch, std::int64_t size) {
  Tensor images = Tensor::empty({batch, 3, size, size});
  RandomStream random({.purpose = Purpose::synthesis});
  std::generate_n(images.data<float>(), images.numel(), [&] { return random.uniform(); });
  return images;
}

Tensor random_labels(std::int64_t batch, int classes) {
  Tensor labels = Tensor::empty({batch}, DType::i64);
  RandomStream random({.purpose = Purpose::synthesis, .sample = 1});
  std::generate_n(labels.data<std::int64_t>(), batch,
                  [&] { return random.below(static_cast<std::uint32_t>(classes)); });
  return labels;
}

bool trains_convolutions(const StepOptions& options) {
  return options.freeze == "none";
}

AcceleratorOptions accelerator_options(const StepOptions& options) {
  AcceleratorOptions accelerator;
  accelerator.threads = options.threads;
  accelerator.precision = options.precision == "bf16" ? Precision::bf16 : Precision::f32;
  return accelerator;
}

/// A training loop without a loader: model, optimizer and one batch.
class Loop {
 public:
  explicit Loop(const StepOptions& options)
      : accelerator_(accelerator_options(options)),
        model_(nn::create_model(options.model,
                                {.num_classes = static_cast<std::size_t>(options.num_classes)})) {
    if (!trains_convolutions(options)) model_->freeze_all_but(model_->classifier());
    optimizer_.emplace(model_->trainable_parameters());
    accelerator_.prepare(*model_, *optimizer_);
    images_ = random_images(options.batch_size, options.img_size).to(accelerator_.device());
    labels_ = random_labels(options.batch_size, options.num_classes).to(accelerator_.device());
  }

  StepTimes step() {
    StepTimes times;
    context().count_times_in(&times.kernels);
    Tensor loss;
    times.forward = seconds_of([&] { loss = cross_entropy((*model_)(images_), labels_); });
    times.backward = seconds_of([&] { accelerator_.backward(loss); });
    times.optimizer = seconds_of([&] {
      optimizer_->step();
      optimizer_->zero_grad();
    });
    context().count_times_in(nullptr);
    return times;
  }

  Accelerator& accelerator() { return accelerator_; }
  CpuContext& context() { return std::get<CpuContext>(accelerator_.device()); }
  nn::Module& model() { return *model_; }

 private:
  Accelerator accelerator_;
  std::unique_ptr<nn::ResNet> model_;
  std::optional<nn::AdamW> optimizer_;
  Tensor images_;
  Tensor labels_;
};

/// Time by kind: what the operations report, the optimizer, and the rest.
void summarise_times(const std::vector<StepTimes>& steps, StepMeasurement& result) {
  result.step_seconds = median_of(steps, [](const StepTimes& s) { return s.total(); });
  result.fastest_step_seconds = result.step_seconds;
  for (const StepTimes& s : steps) {
    result.fastest_step_seconds = std::min(result.fastest_step_seconds, s.total());
  }
  result.phase_seconds = {
      {"forward", median_of(steps, [](const StepTimes& s) { return s.forward; })},
      {"backward", median_of(steps, [](const StepTimes& s) { return s.backward; })},
      {"optimizer", median_of(steps, [](const StepTimes& s) { return s.optimizer; })}};
  const auto in_file = [&](const char* file) {
    return median_of(steps, [file](const StepTimes& s) {
      const auto entry = s.kernels.seconds().find(file);
      return entry == s.kernels.seconds().end() ? 0.0 : entry->second;
    });
  };
  result.kind_seconds = {{"convolution", in_file("conv")},
                         {"batch_norm", in_file("norm")},
                         {"pooling", in_file("pool")},
                         {"optimizer", result.phase_seconds.at("optimizer")}};
  double rest = result.step_seconds;
  for (const auto& [kind, seconds] : result.kind_seconds) rest -= seconds;
  result.kind_seconds["other"] = std::max(0.0, rest);
}

/// What a context has counted so far.
struct Counts {
  explicit Counts(CpuContext& context)
      : conversions(static_cast<double>(context.conversions().count)),
        converted_bytes(static_cast<double>(context.conversions().bytes)),
        allocations(static_cast<double>(context.allocator().statistics().system_allocations)) {}

  double conversions, converted_bytes, allocations;
};

/// Adds what a round of steps has counted, as a share of `steps`.
void add_counts(const Counts& before, const Counts& after, int steps, StepMeasurement& result) {
  result.layout_conversions += (after.conversions - before.conversions) / steps;
  result.layout_conversion_bytes += (after.converted_bytes - before.converted_bytes) / steps;
  result.system_allocations += (after.allocations - before.allocations) / steps;
}

/// Runs steps and, in turn with them, the convolutions alone and the peak.
void take_turns(const StepOptions& options, Loop& loop,
                const std::vector<kernels::ConvolutionWork>& convolutions,
                StepMeasurement& result) {
  CpuContext& context = loop.context();
  const DType dtype = options.precision == "bf16" ? DType::bf16 : DType::f32;
  std::vector<StepTimes> steps;
  std::vector<double> alone, share_of_alone, peaks, share_of_peak;
  const int rounds = std::min(kRounds, options.steps);
  for (int round = 1; round <= rounds; ++round) {
    const Counts before(context);
    std::vector<StepTimes> these;
    const std::size_t wanted = static_cast<std::size_t>(options.steps * round / rounds);
    while (steps.size() + these.size() < wanted) these.push_back(loop.step());
    add_counts(before, Counts(context), options.steps, result);

    const double step = median_of(these, [](const StepTimes& s) { return s.total(); });
    const auto measured = kernels::measure_convolutions(context, convolutions, dtype,
                                                        trains_convolutions(options), 2);
    alone.push_back(measured.step_seconds);
    peaks.push_back(kernels::measure_peak_gflops(context, dtype));
    share_of_alone.push_back(alone.back() / step);
    share_of_peak.push_back(result.convolution_flops * 1e-9 / step / peaks.back());
    std::move(these.begin(), these.end(), std::back_inserter(steps));
  }
  summarise_times(steps, result);
  result.convolutions_alone_seconds = median(alone);
  result.share_of_convolutions_alone = median(share_of_alone);
  result.peak_gflops = median(peaks);
  result.share_of_peak = median(share_of_peak);
}

}  // namespace

StepMeasurement measure_step(const StepOptions& options) {
  Loop loop(options);
  CpuContext& context = loop.context();
  StepMeasurement result;
  result.processes = loop.accelerator().num_processes();
  result.threads = context.threads();
  result.isa = name_of(context.isa());
  result.library = kernels::CpuPrimitives::description();

  std::vector<kernels::ConvolutionWork> convolutions;
  {
    const ConvolutionList noted(loop.model());
    loop.step();
    convolutions = noted.list();
    result.layouts = noted.layouts();
  }
  for (const kernels::ConvolutionWork& work : convolutions) {
    const int passes = trains_convolutions(options) ? (work.needs_dx ? 3 : 2) : 1;
    result.convolution_flops += passes * kernels::conv2d_flops(work);
  }
  for (int i = 1; i < kWarmUpSteps; ++i) loop.step();
  result.peak_bytes = context.allocator().statistics().peak_bytes_in_use;
  take_turns(options, loop, convolutions, result);
  return result;
}

}  // namespace collar::apps::bench
