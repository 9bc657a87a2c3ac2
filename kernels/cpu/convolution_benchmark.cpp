// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/convolution_benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <deque>

#include "kernels/core/dispatch.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"

namespace collar::kernels {
namespace {

// A tensor in the context's memory, with values whose products neither vanish nor overflow.
class Image {
 public:
  Image(CpuContext& context, const Shape& shape, DType dtype, Layout layout)
      : memory_(context, shape.numel() * static_cast<std::int64_t>(size_of(dtype))),
        view_{memory_.data(), dtype, shape, layout} {
    dispatch_float(dtype, [&]<typename T>(std::type_identity<T>) {
      T* values = view_.as<T>();
      parallel_ranges(context, shape.numel(), [values](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          values[i] = T(static_cast<float>(i * 40503 % 1024) / 1024.0F - 0.5F);
        }
      });
    });
  }
  View view() const { return view_; }

 private:
  Scratch<std::byte> memory_;
  View view_;
};

// One convolution of the network with everything it reads and writes.
struct Layer {
  Layer(CpuContext& context, const ConvolutionWork& layer_work, std::size_t layer_index,
        DType dtype, Conv2dLayouts layouts)
      : work(layer_work),
        index(layer_index),
        x(context, work.x, dtype, layouts.x),
        y(context, conv2d_output_shape(work.x, work.w, work.geometry), dtype, layouts.y),
        w(context, work.w, DType::f32, Layout::plain),
        dw(context, work.w, DType::f32, Layout::plain) {}

  const ConvolutionWork& work;
  std::size_t index;
  Image x, y, w, dw;
  PackedWeights packed;
};

template <typename Call>
double seconds_of(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Gradients are written where the activations were: as large, and no longer needed.
std::vector<ConvolutionTimes> run_step(CpuContext& context, std::deque<Layer>& layers,
                                       std::size_t kinds, bool backward) {
  std::vector<ConvolutionTimes> times(kinds);
  for (Layer& layer : layers) {
    const Weight weight{layer.w.view(), 1, &layer.packed};
    times[layer.index].forward += seconds_of([&] {
      conv2d_forward(context, layer.x.view(), weight, {}, layer.y.view(), layer.work.geometry);
    });
  }
  if (!backward) return times;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const Weight weight{layer->w.view(), 1, &layer->packed};
    times[layer->index].weights += seconds_of([&] {
      conv2d_backward_weights(context, layer->x.view(), layer->y.view(), layer->dw.view(), {},
                              false, layer->work.geometry);
    });
    if (!layer->work.needs_dx) continue;
    const Image dx(context, layer->work.x, layer->x.view().dtype, layer->x.view().layout);
    times[layer->index].data += seconds_of([&] {
      conv2d_backward_data(context, layer->y.view(), weight, dx.view(), layer->work.geometry);
    });
  }
  return times;
}

// Applies `value` to every step's record and takes the median.
template <typename Record, typename Value>
double median_of(const std::vector<Record>& records, const Value& value) {
  std::vector<double> values;
  for (const Record& record : records) values.push_back(value(record));
  return median(std::move(values));
}

ConvolutionTimes sum(const std::vector<ConvolutionTimes>& times) {
  ConvolutionTimes all;
  for (const ConvolutionTimes& some : times) {
    all.forward += some.forward;
    all.data += some.data;
    all.weights += some.weights;
  }
  return all;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double conv2d_flops(const ConvolutionWork& work) {
  const Shape y = conv2d_output_shape(work.x, work.w, work.geometry);
  return 2.0 * static_cast<double>(y.numel()) *
         static_cast<double>(work.w[1] * work.w[2] * work.w[3]);
}

ConvolutionMeasurement measure_convolutions(CpuContext& context,
                                            std::span<const ConvolutionWork> list, DType dtype,
                                            bool backward, int steps) {
  std::deque<Layer> layers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Conv2dLayouts layouts = conv2d_layouts(context, list[i].x, list[i].w, list[i].geometry);
    for (int repetition = 0; repetition < list[i].count; ++repetition) {
      layers.emplace_back(context, list[i], i, dtype, layouts);
    }
  }
  run_step(context, layers, list.size(), backward);
  std::vector<std::vector<ConvolutionTimes>> records;
  for (int step = 0; step < std::max(steps, 1); ++step) {
    records.push_back(run_step(context, layers, list.size(), backward));
  }

  ConvolutionMeasurement result;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result.each.push_back({median_of(records, [i](const auto& r) { return r[i].forward; }),
                           median_of(records, [i](const auto& r) { return r[i].data; }),
                           median_of(records, [i](const auto& r) { return r[i].weights; })});
  }
  result.step = {median_of(records, [](const auto& r) { return sum(r).forward; }),
                 median_of(records, [](const auto& r) { return sum(r).data; }),
                 median_of(records, [](const auto& r) { return sum(r).weights; })};
  result.step_seconds = median_of(records, [](const auto& r) { return sum(r).total(); });
  return result;
}

}  // namespace collar::kernels
