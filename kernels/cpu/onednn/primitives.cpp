// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/primitives.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <span>

#include "kernels/core/error.hpp"
#include "kernels/cpu/onednn/state.hpp"

namespace collar::kernels {
namespace {

std::string_view name_of_isa(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other";
  }
}

dnnl::cpu_isa cap_of(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return dnnl::cpu_isa::sse41;
    case Isa::avx2:
      return dnnl::cpu_isa::avx2;
    case Isa::avx512:
      return dnnl::cpu_isa::avx512_core;
    case Isa::avx512_bf16:
      break;
  }
  return dnnl::cpu_isa::all;
}

// oneDNN's instruction set is a setting of the process that freezes at its first use. So only the
// cap of the process (COLLAR_ISA) is passed on; a context with a lower level than that chooses the
// block width, and the block width makes oneDNN choose its kernels for AVX2. Asking a second time
// changes nothing and does no harm.
dnnl::cpu_isa effective_isa() {
  if (const Isa cap = detect_isa(); cap < hardware_isa()) dnnl::set_max_cpu_isa(cap_of(cap));
  return dnnl::get_effective_cpu_isa();
}

bool has_bf16(dnnl::cpu_isa isa) {
  constexpr auto kWanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<unsigned>(isa) & kWanted) == kWanted;
}

// FNV-1a over numbers.
class Hash {
 public:
  void add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ (static_cast<std::uint64_t>(number) >> shift & 0xff)) * 0x100000001b3;
    }
  }
  void add(std::span<const dnnl_dim_t> numbers) {
    for (const dnnl_dim_t number : numbers) add(number);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

namespace onednn {

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc image_desc(const Shape& shape, DType dtype, Layout layout) {
  using Tag = dnnl::memory::format_tag;
  const auto tag = [&] {
    switch (layout) {
      case Layout::channels_last:
        return Tag::nhwc;
      case Layout::blocked8:
        return Tag::nChw8c;
      case Layout::blocked16:
        return Tag::nChw16c;
      case Layout::plain:
        break;
    }
    return Tag::nchw;
  };
  return {{shape[0], shape[1], shape[2], shape[3]}, type_of(dtype), tag()};
}

std::uint64_t key_of(const dnnl::memory::desc& description) {
  const dnnl_memory_desc_t& d = description.data;
  const auto rank = static_cast<std::size_t>(d.ndims);
  Hash hash;
  hash.add(d.data_type);
  hash.add(d.format_kind);
  hash.add({d.dims, rank});
  hash.add({d.padded_dims, rank});
  if (d.format_kind == dnnl_format_kind_wino) {
    const dnnl_wino_desc_t& wino = d.format_desc.wino_desc;
    for (const std::int64_t number :
         {std::int64_t{wino.wino_format}, std::int64_t{wino.r}, std::int64_t{wino.alpha},
          std::int64_t{wino.ic}, std::int64_t{wino.oc}, std::int64_t{wino.ic_block},
          std::int64_t{wino.oc_block}, std::int64_t{wino.ic2_block},
          std::int64_t{wino.oc2_block}}) {
      hash.add(number);
    }
  } else {
    const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
    const auto blocks = static_cast<std::size_t>(blocking.inner_nblks);
    hash.add({blocking.strides, rank});
    hash.add({blocking.inner_blks, blocks});
    hash.add({blocking.inner_idxs, blocks});
  }
  return hash.value();
}

}  // namespace onednn

CpuPrimitives::State::State(const CpuContext& context)
    : native_bf16(has_bf16(effective_isa()) && context.has_fast_bf16()),
      direct(context.direct_convolutions()) {
  engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  stream = dnnl::stream(engine);
}

dnnl::memory CpuPrimitives::State::memory(const dnnl::memory::desc& description,
                                          const void* data) const {
  return {description, engine, const_cast<void*>(data)};
}

void CpuPrimitives::State::run(const dnnl::primitive& primitive,
                               const onednn::Arguments& arguments) const {
  try {
    primitive.execute(stream, arguments);
  } catch (const dnnl::error& error) {
    throw DeviceError(fmt::format("oneDNN: {}", error.message));
  }
}

dnnl::memory CpuPrimitives::State::packed(const onednn::Planned& planned, const Weight& w) const {
  const dnnl::memory master = memory(planned.master, w.master.data);
  if (planned.weights == planned.master) return master;
  PackedWeights::Copy& copy = (*w.packed)[planned.weights_key];
  const bool fresh = copy.data != nullptr && copy.version == w.version;
  if (copy.data == nullptr) {
    constexpr std::size_t kAlignment = CachingAllocator::kAlignment;
    const std::size_t bytes =
        (planned.weights.get_size() + kAlignment - 1) / kAlignment * kAlignment;
    copy.data = {std::aligned_alloc(kAlignment, bytes), std::free};
    if (copy.data == nullptr) {
      throw DeviceError(fmt::format("out of memory: {} bytes wanted for a packed weight {}", bytes,
                                    to_string(w.master.shape)));
    }
  }
  const dnnl::memory target = memory(planned.weights, copy.data.get());
  if (!fresh) {
    run(planned.to_primitive, {{DNNL_ARG_FROM, master}, {DNNL_ARG_TO, target}});
    copy.version = w.version;
  }
  return target;
}

void CpuPrimitives::State::unpack(const onednn::Planned& planned, const void* gradient, View dw,
                                  bool accumulate) const {
  run(accumulate ? planned.add_to_master : planned.to_master,
      {{DNNL_ARG_FROM, memory(planned.weights, gradient)},
       {DNNL_ARG_TO, memory(planned.master, dw.data)}});
}

CpuPrimitives::CpuPrimitives(const CpuContext& context)
    : state_(std::make_unique<State>(context)) {}
CpuPrimitives::~CpuPrimitives() = default;

std::string CpuPrimitives::description() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch,
                     name_of_isa(effective_isa()));
}

// Below AVX2 oneDNN has gradients of plain images only.
int CpuPrimitives::preferred_block(Isa isa) {
  return isa >= Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 1;
}

std::vector<std::string> CpuPrimitives::implementations() const {
  std::vector<std::string> texts;
  for (const auto& [signature, planned] : state_->plans) texts.push_back(planned.implementation);
  return texts;
}

}  // namespace collar::kernels
