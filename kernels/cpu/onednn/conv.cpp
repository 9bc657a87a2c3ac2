// SPDX-License-Identifier: Apache-2.0
// The convolution and its gradients by oneDNN. Weights and their gradients are in the order each
// primitive likes best; images are in the layout they come in.
#include "kernels/conv.hpp"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "kernels/core/error.hpp"
#include "kernels/cpu/onednn/state.hpp"
#include "kernels/cpu/onednn/threads.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/reference/conv.hpp"

namespace collar::kernels {
namespace {

using dnnl::memory;
using onednn::Pass;
using onednn::Planned;
using onednn::Signature;
using onednn::ThreadScope;
using State = CpuConvolutions::State;

// A convolution without its data. `x` and `y` stand for their gradients too.
struct Problem {
  Pass pass;
  ConstView x;
  Shape w;
  ConstView y;
  bool bias;
  const Conv2dGeometry& geometry;

  bool empty() const { return x.numel() == 0 || w.numel() == 0 || y.numel() == 0; }
  Signature signature() const;
};

Signature Problem::signature() const {
  Signature signature{};
  auto next = signature.begin();
  const auto put = [&](auto number) { *next++ = static_cast<std::int64_t>(number); };
  for (const std::int64_t extent : x.shape.extents()) put(extent);
  for (const std::int64_t extent : w.extents()) put(extent);
  for (int axis = 0; axis < 2; ++axis) {
    put(geometry.stride[static_cast<std::size_t>(axis)]);
    put(geometry.padding[static_cast<std::size_t>(axis)]);
    put(geometry.dilation[static_cast<std::size_t>(axis)]);
  }
  put(geometry.groups);
  put(pass);
  put(x.dtype);
  put(x.layout);
  put(y.layout);
  put(bias);
  put(1);  // a convolution, not a matrix product
  return signature;
}

memory::dims weight_dims(const Shape& w, std::int64_t groups) {
  if (groups == 1) return {w[0], w[1], w[2], w[3]};
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

std::string_view name_of(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::data ? "data" : "weights";
}

// Turns a primitive descriptor into a planned primitive, whatever its pass.
template <typename Primitive>
Planned finish(typename Primitive::primitive_desc descriptor) {
  Planned planned;
  planned.primitive = Primitive(descriptor);
  planned.scratchpad = descriptor.scratchpad_desc();
  planned.implementation = descriptor.impl_info_str();
  if constexpr (std::is_same_v<Primitive, dnnl::convolution_backward_weights>) {
    planned.weights = descriptor.diff_weights_desc();
  } else {
    planned.weights = descriptor.weights_desc();
  }
  return planned;
}

// Reorders between the master and what the primitive reads or writes.
void plan_reorders(const State& state, Pass pass, Planned& planned) {
  if (pass != Pass::weights) {
    planned.weights_key = onednn::key_of(planned.weights);
    if (planned.weights == planned.master) return;
    planned.to_primitive = dnnl::reorder(
        {state.engine, planned.master, state.engine, planned.weights, dnnl::primitive_attr()});
    return;
  }
  dnnl::post_ops sum;
  sum.append_sum();
  dnnl::primitive_attr adding;
  adding.set_post_ops(sum);
  planned.to_master = dnnl::reorder({state.engine, planned.weights, state.engine, planned.master});
  planned.add_to_master =
      dnnl::reorder({state.engine, planned.weights, state.engine, planned.master, adding});
}

Planned plan(const State& state, const Problem& problem) {
  using dnnl::prop_kind;
  const auto& [pass, x, w, y, has_bias, g] = problem;
  const auto type = onednn::type_of(x.dtype);
  const memory::dims dims = weight_dims(w, g.groups);
  const memory::dims strides(g.stride.begin(), g.stride.end());
  const memory::dims padding(g.padding.begin(), g.padding.end());
  const memory::dims dilation{g.dilation[0] - 1, g.dilation[1] - 1};
  const auto algorithm = state.direct || x.dtype != DType::f32 ? dnnl::algorithm::convolution_direct
                                                               : dnnl::algorithm::convolution_auto;
  const memory::desc source = onednn::image_desc(x.shape, x.dtype, x.layout);
  const memory::desc destination = onednn::image_desc(y.shape, y.dtype, y.layout);
  const memory::desc weights(dims, type, memory::format_tag::any);
  const memory::desc gradient(dims, memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias =
      has_bias ? memory::desc({w[0]}, memory::data_type::f32, memory::format_tag::x)
               : memory::desc();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);

  // oneDNN chooses the kernels of the gradients with the forward pass as a hint.
  const auto forward = [&] {
    return dnnl::convolution_forward::primitive_desc(
        {prop_kind::forward_training, algorithm, source, weights, bias, destination, strides,
         dilation, padding, padding},
        attributes, state.engine);
  };
  Planned planned = [&] {
    switch (pass) {
      case Pass::forward:
        return finish<dnnl::convolution_forward>(forward());
      case Pass::data:
        return finish<dnnl::convolution_backward_data>(
            {{algorithm, source, weights, destination, strides, dilation, padding, padding},
             attributes,
             state.engine,
             forward()});
      case Pass::weights:
        break;
    }
    return finish<dnnl::convolution_backward_weights>(
        {{algorithm, source, gradient, bias, destination, strides, dilation, padding, padding},
         attributes,
         state.engine,
         forward()});
  }();
  planned.source = source;
  planned.destination = destination;
  planned.bias = bias;
  planned.master =
      memory::desc(dims, memory::data_type::f32,
                   g.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw);
  plan_reorders(state, pass, planned);
  planned.implementation =
      fmt::format("conv2d {} {} {} {} * {}: {}", name_of(pass), name_of(x.dtype), name_of(x.layout),
                  to_string(x.shape), to_string(w), planned.implementation);
  return planned;
}

const Planned& find(State& state, const Problem& problem) {
  return state.find(problem.signature(), [&] {
    try {
      return plan(state, problem);
    } catch (const dnnl::error& error) {
      throw DeviceError(fmt::format("conv2d {}: oneDNN has nothing for {} {} {} * {}: {}",
                                    name_of(problem.pass), name_of(problem.x.dtype),
                                    name_of(problem.x.layout), to_string(problem.x.shape),
                                    to_string(problem.w), error.message));
    }
  });
}

}  // namespace

Conv2dLayouts conv2d_layouts(const CpuContext& context, const Shape& x, const Shape& w,
                             const Conv2dGeometry& geometry) {
  constexpr Conv2dLayouts kPlain{Layout::plain, Layout::plain};
  const Layout y_layout = context.preferred_layout(w[0]);
  if (y_layout == Layout::plain) return kPlain;
  const std::int64_t block = block_of(y_layout);
  const bool divides = x[1] % block == 0;
  const bool depthwise = w[1] == 1 && w[0] == geometry.groups;
  const bool groups_divide = w[1] % block == 0 && w[0] / geometry.groups % block == 0;
  if (divides && (geometry.groups == 1 || depthwise || groups_divide)) return {y_layout, y_layout};
  // The first convolution of a network reads the picture as the loader wrote it.
  if (geometry.groups == 1 && x[1] <= 3) return {Layout::plain, y_layout};
  return kPlain;
}

void conv2d_forward(CpuContext& context, ConstView x, const Weight& w, ConstView bias, View y,
                    const Conv2dGeometry& geometry) {
  State& state = context.convolutions().state();
  const Problem problem{Pass::forward, x, w.master.shape, y, bool{bias}, geometry};
  if (!state.computes(x.dtype) || problem.empty()) {
    return reference::conv2d_forward(x, w.master, bias, y, geometry);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned = find(state, problem);
  Scratch<std::byte> scratch(context, onednn::bytes_of(planned.scratchpad));
  onednn::Arguments arguments{
      {DNNL_ARG_SRC, state.memory(planned.source, x.data)},
      {DNNL_ARG_WEIGHTS, state.packed(planned, w)},
      {DNNL_ARG_DST, state.memory(planned.destination, y.data)},
      {DNNL_ARG_SCRATCHPAD, state.memory(planned.scratchpad, scratch.data())}};
  if (bias) arguments.emplace(DNNL_ARG_BIAS, state.memory(planned.bias, bias.data));
  state.run(planned.primitive, arguments);
}

void conv2d_backward_data(CpuContext& context, ConstView dy, const Weight& w, View dx,
                          const Conv2dGeometry& geometry) {
  State& state = context.convolutions().state();
  const Problem problem{Pass::data, dx, w.master.shape, dy, false, geometry};
  if (!state.computes(dy.dtype) || problem.empty()) {
    return reference::conv2d_backward_data(dy, w.master, dx, geometry);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned = find(state, problem);
  Scratch<std::byte> scratch(context, onednn::bytes_of(planned.scratchpad));
  state.run(planned.primitive,
            {{DNNL_ARG_DIFF_DST, state.memory(planned.destination, dy.data)},
             {DNNL_ARG_WEIGHTS, state.packed(planned, w)},
             {DNNL_ARG_DIFF_SRC, state.memory(planned.source, dx.data)},
             {DNNL_ARG_SCRATCHPAD, state.memory(planned.scratchpad, scratch.data())}});
}

void conv2d_backward_weights(CpuContext& context, ConstView x, ConstView dy, View dw, View dbias,
                             bool accumulate, const Conv2dGeometry& geometry) {
  if (!dw) return reference::conv2d_backward_weights(x, dy, dw, dbias, accumulate, geometry);
  State& state = context.convolutions().state();
  const Problem problem{Pass::weights, x, dw.shape, dy, bool{dbias}, geometry};
  if (!state.computes(x.dtype) || problem.empty()) {
    return reference::conv2d_backward_weights(x, dy, dw, dbias, accumulate, geometry);
  }
  const ThreadScope threads(context.threads());
  const Planned& planned = find(state, problem);
  // Gradients are born in place if the primitive's order is the master's, else beside it.
  const bool in_place = !accumulate && planned.weights == planned.master;
  Scratch<std::byte> scratch(context, onednn::bytes_of(planned.scratchpad));
  Scratch<std::byte> beside(context, in_place ? 0 : onednn::bytes_of(planned.weights));
  Scratch<float> bias_beside(context, dbias && accumulate ? dbias.numel() : 0);
  void* gradient = in_place ? dw.data : beside.data();
  float* bias_gradient = accumulate ? bias_beside.data() : dbias.as<float>();

  onednn::Arguments arguments{
      {DNNL_ARG_SRC, state.memory(planned.source, x.data)},
      {DNNL_ARG_DIFF_DST, state.memory(planned.destination, dy.data)},
      {DNNL_ARG_DIFF_WEIGHTS, state.memory(planned.weights, gradient)},
      {DNNL_ARG_SCRATCHPAD, state.memory(planned.scratchpad, scratch.data())}};
  if (dbias) arguments.emplace(DNNL_ARG_DIFF_BIAS, state.memory(planned.bias, bias_gradient));
  state.run(planned.primitive, arguments);
  if (!in_place) state.unpack(planned, gradient, dw, accumulate);
  if (dbias && accumulate) {
    for (std::int64_t k = 0; k < dbias.numel(); ++k) dbias.as<float>()[k] += bias_gradient[k];
  }
}

}  // namespace collar::kernels
