// SPDX-License-Identifier: Apache-2.0
// Everything kernels need to run on the host: how many threads, which instructions, memory, and the
// state of the vendor library. A context is used by one thread at a time; its kernels may run on
// several.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/device.hpp"
#include "kernels/core/layout.hpp"
#include "kernels/runtime/allocator.hpp"
#include "kernels/runtime/isa.hpp"
#include "kernels/runtime/kernel_times.hpp"

namespace collar {

namespace kernels {
class CpuConvolutions;  // primitives of oneDNN, or nothing: kernels/cpu/onednn/,
                        // kernels/cpu/portable/
}

struct CpuOptions {
  int threads = 0;         ///< at most 1024; 0: as many as the CPUs this process may use
  Isa isa = detect_isa();  ///< own kernels and block width; never above the hardware
  bool direct_convolutions =
      false;  ///< no Winograd: slower, rounding independent of the batch size
};

class CpuContext {
 public:
  /// Throws UsageError for options out of range or above the hardware.
  explicit CpuContext(const CpuOptions& options = {});
  ~CpuContext();
  CpuContext(const CpuContext&) = delete;
  CpuContext& operator=(const CpuContext&) = delete;

  static constexpr Device device() { return {}; }
  int threads() const { return threads_; }
  Isa isa() const { return isa_; }
  bool direct_convolutions() const { return direct_convolutions_; }
  /// Whether bf16 convolutions run in hardware.
  bool has_fast_bf16() const { return isa_ == Isa::avx512_bf16; }
  /// The layout activations with this many channels have inside a network.
  Layout preferred_layout(std::int64_t channels) const;

  CachingAllocator& allocator() { return *allocator_; }
  kernels::CpuConvolutions& convolutions() { return *convolutions_; }

  /// Where the time of kernels is counted; null: nowhere. It must outlive the measurement.
  KernelTimes* kernel_times() const { return kernel_times_; }
  void count_times_in(KernelTimes* times) { kernel_times_ = times; }

  /// Layout conversions of activations since construction: how many, and the bytes they wrote.
  struct Conversions {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  const Conversions& conversions() const { return conversions_; }
  void count_conversion(std::uint64_t bytes) {
    ++conversions_.count;
    conversions_.bytes += bytes;
  }

 private:
  int threads_;
  Isa isa_;
  bool direct_convolutions_;
  std::shared_ptr<CachingAllocator> allocator_;  // shared with the memory it gave
  Conversions conversions_;
  KernelTimes* kernel_times_ = nullptr;
  std::unique_ptr<kernels::CpuConvolutions> convolutions_;
};

/// CPUs this process may run on, from its affinity mask.
int available_cpus();

}  // namespace collar
