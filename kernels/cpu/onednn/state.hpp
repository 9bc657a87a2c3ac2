// SPDX-License-Identifier: Apache-2.0
// What a context keeps of oneDNN: engine, stream, and one planned primitive for each distinct
// problem it was given, made on first use (about a millisecond each) and found by signature ever
// after.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "kernels/core/view.hpp"
#include "kernels/cpu/primitives.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "kernels/runtime/packed_weights.hpp"

namespace collar::kernels::onednn {

using Arguments = std::unordered_map<int, dnnl::memory>;

/// All that distinguishes one problem from another, as numbers.
using Signature = std::array<std::int64_t, 24>;

enum class Pass : std::int64_t { forward, data, weights };

/// A primitive and the memory it wants. `source` is what is read besides weights (x, or dy when x
/// is not read), `destination` what is written or, for weight gradients, the dy that is read.
struct Planned {
  dnnl::primitive primitive;
  dnnl::memory::desc source;
  dnnl::memory::desc weights;  ///< or their gradient, in the primitive's own order
  dnnl::memory::desc bias;
  dnnl::memory::desc destination;
  dnnl::memory::desc scratchpad;
  dnnl::memory::desc master;   ///< the weights as the engine keeps them
  dnnl::reorder to_primitive;  ///< master -> weights
  dnnl::reorder to_master;     ///< weights -> master
  dnnl::reorder add_to_master;
  std::uint64_t weights_key = 0;  ///< of the packed copy
  std::string implementation;
};

/// oneDNN's view of a type. f32 or bf16.
dnnl::memory::data_type type_of(DType dtype);
/// Images [N, C, H, W] in one of our layouts.
dnnl::memory::desc image_desc(const Shape& shape, DType dtype, Layout layout);
inline std::int64_t bytes_of(const dnnl::memory::desc& description) {
  return static_cast<std::int64_t>(description.get_size());
}
/// Equal for equal descriptions, in every context and process; in practice different for different
/// ones.
std::uint64_t key_of(const dnnl::memory::desc& description);

}  // namespace collar::kernels::onednn

namespace collar::kernels {

struct CpuPrimitives::State {
  explicit State(const CpuContext& context);

  /// Whether oneDNN computes this type here at full speed. Other types take the reference kernels:
  /// correct, slow.
  bool computes(DType dtype) const {
    return dtype == DType::f32 || (dtype == DType::bf16 && native_bf16);
  }
  dnnl::memory memory(const dnnl::memory::desc& description, const void* data) const;
  /// Runs to completion. Throws DeviceError with oneDNN's message.
  void run(const dnnl::primitive& primitive, const onednn::Arguments& arguments) const;
  /// The weight as a planned primitive reads it: the master itself, or the copy kept with the
  /// weight, refreshed first if the master has changed.
  dnnl::memory packed(const onednn::Planned& planned, const Weight& w) const;
  /// Moves a gradient from the primitive's order to the master's: written, or added.
  void unpack(const onednn::Planned& planned, const void* gradient, View dw, bool accumulate) const;

  /// The planned primitive of a signature; `plan` makes it the first time.
  template <typename Plan>
  const onednn::Planned& find(const onednn::Signature& signature, const Plan& plan) {
    if (const auto known = plans.find(signature); known != plans.end()) return known->second;
    if (plans.size() >= kMaxPlans) plans.clear();
    return plans.emplace(signature, plan()).first->second;
  }

  // Enough for several networks; a stream of ever new image sizes must not fill the memory.
  static constexpr std::size_t kMaxPlans = 2048;

  dnnl::engine engine;
  dnnl::stream stream;
  bool native_bf16;
  bool direct;
  std::map<onednn::Signature, onednn::Planned> plans;
};

}  // namespace collar::kernels
