// SPDX-License-Identifier: Apache-2.0
// The fully connected layer by oneDNN's matrix product, which reads transposed operands through
// strides.
#include "kernels/matmul.hpp"

#include <fmt/format.h>

#include "kernels/core/dispatch.hpp"
#include "kernels/cpu/onednn/state.hpp"
#include "kernels/cpu/onednn/threads.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/reference/matmul.hpp"

namespace collar::kernels {
namespace {

using dnnl::memory;
using onednn::Pass;
using onednn::Planned;
using onednn::ThreadScope;
using State = CpuConvolutions::State;

// A row-major matrix, or the transpose of one.
memory::desc matrix(std::int64_t rows, std::int64_t columns, DType dtype, bool transposed = false) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
  return {{rows, columns}, onednn::type_of(dtype), strides};
}

struct Problem {
  Pass pass;
  std::int64_t batch, inputs, outputs;
  DType dtype;
  bool bias, accumulate;
};

Planned plan(const State& state, const Problem& p) {
  Planned planned;
  switch (p.pass) {
    case Pass::forward:
      planned.source = matrix(p.batch, p.inputs, p.dtype);
      planned.weights = matrix(p.inputs, p.outputs, p.dtype, true);
      planned.master = matrix(p.inputs, p.outputs, DType::f32, true);
      planned.destination = matrix(p.batch, p.outputs, p.dtype);
      break;
    case Pass::data:
      planned.source = matrix(p.batch, p.outputs, p.dtype);
      planned.weights = matrix(p.outputs, p.inputs, p.dtype);
      planned.master = matrix(p.outputs, p.inputs, DType::f32);
      planned.destination = matrix(p.batch, p.inputs, p.dtype);
      break;
    case Pass::weights:
      planned.source = matrix(p.outputs, p.batch, p.dtype, true);
      planned.weights = planned.master = matrix(p.batch, p.inputs, p.dtype);
      planned.destination = matrix(p.outputs, p.inputs, DType::f32);
      break;
  }
  if (p.bias) planned.bias = matrix(1, p.outputs, DType::f32);

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const auto description =
      p.bias
          ? dnnl::matmul::desc(planned.source, planned.weights, planned.bias, planned.destination)
          : dnnl::matmul::desc(planned.source, planned.weights, planned.destination);
  const dnnl::matmul::primitive_desc descriptor(description, attributes, state.engine);
  planned.primitive = dnnl::matmul(descriptor);
  planned.scratchpad = descriptor.scratchpad_desc();
  planned.implementation =
      fmt::format("linear {} [{}, {}] * [{}, {}]: {}", name_of(p.dtype), p.batch, p.inputs,
                  p.outputs, p.inputs, descriptor.impl_info_str());
  if (planned.weights != planned.master) {
    planned.weights_key = onednn::key_of(planned.weights);
    planned.to_primitive =
        dnnl::reorder({state.engine, planned.master, state.engine, planned.weights});
  }
  return planned;
}

const Planned& find(State& state, const Problem& p) {
  const onednn::Signature signature{
      p.batch, p.inputs,    p.outputs, std::int64_t(p.pass), std::int64_t(p.dtype),
      p.bias,  p.accumulate};
  return state.find(signature, [&] {
    try {
      return plan(state, p);
    } catch (const dnnl::error& error) {
      throw DeviceError(fmt::format("linear: oneDNN has nothing for {} [{}, {}] * [{}, {}]: {}",
                                    name_of(p.dtype), p.batch, p.inputs, p.outputs, p.inputs,
                                    error.message));
    }
  });
}

void run(CpuContext& context, const Planned& planned, const void* source,
         const dnnl::memory& weights, const void* bias, void* destination) {
  const State& state = context.convolutions().state();
  Scratch<std::byte> scratch(context, onednn::bytes_of(planned.scratchpad));
  onednn::Arguments arguments{
      {DNNL_ARG_SRC, state.memory(planned.source, source)},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_DST, state.memory(planned.destination, destination)},
      {DNNL_ARG_SCRATCHPAD, state.memory(planned.scratchpad, scratch.data())}};
  if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, state.memory(planned.bias, bias));
  state.run(planned.primitive, arguments);
}

bool empty(const Shape& x, const Shape& w) {
  return x.numel() == 0 || w.numel() == 0;
}

void add_column_sums(ConstView dy, View dbias, bool accumulate) {
  const std::int64_t columns = dy.shape[1];
  dispatch_float(dy.dtype, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t o = 0; o < columns; ++o) {
      double sum = accumulate ? double{dbias.as<float>()[o]} : 0.0;
      for (std::int64_t n = 0; n < dy.shape[0]; ++n) {
        sum += double{static_cast<float>(dy.as<T>()[n * columns + o])};
      }
      dbias.as<float>()[o] = static_cast<float>(sum);
    }
  });
}

}  // namespace

void linear_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y) {
  State& state = context.convolutions().state();
  if (!state.computes(x.dtype) || empty(x.shape, w.master.shape)) {
    return reference::linear_forward(x, w.master, bias, y);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned =
      find(state, {Pass::forward, x.shape[0], x.shape[1], y.shape[1], x.dtype, bool{bias}, false});
  run(context, planned, x.data, state.packed(planned, w), bias.data, y.data);
}

void linear_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx) {
  State& state = context.convolutions().state();
  if (!state.computes(dy.dtype) || empty(dx.shape, w.master.shape)) {
    return reference::linear_backward_data(dy, w.master, dx);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned =
      find(state, {Pass::data, dy.shape[0], dx.shape[1], dy.shape[1], dy.dtype, false, false});
  run(context, planned, dy.data, state.packed(planned, w), nullptr, dx.data);
}

void linear_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate) {
  if (!dw) return add_column_sums(dy, dbias, accumulate);
  State& state = context.convolutions().state();
  if (!state.computes(x.dtype) || empty(x.shape, dw.shape)) {
    return reference::linear_backward_weights(x, dy, dw, dbias, accumulate);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned =
      find(state, {Pass::weights, x.shape[0], x.shape[1], dy.shape[1], x.dtype, false, accumulate});
  run(context, planned, dy.data, state.memory(planned.weights, x.data), nullptr, dw.data);
  if (dbias) add_column_sums(dy, dbias, accumulate);
}

}  // namespace collar::kernels
