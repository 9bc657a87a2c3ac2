// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cpu_context.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "kernels/core/error.hpp"
#include "kernels/cpu/convolutions.hpp"

namespace collar {

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

namespace {

const CpuOptions& checked(const CpuOptions& options) {
  if (options.threads < 0 || options.threads > 1024) {
    throw UsageError(
        fmt::format("threads: expected 0 (all CPUs) to 1024, got {}", options.threads));
  }
  if (options.isa > hardware_isa()) {
    throw UsageError(fmt::format("instruction set {} was asked for, but this CPU offers only {}",
                                 name_of(options.isa), name_of(hardware_isa())));
  }
  return options;
}

}  // namespace

CpuContext::CpuContext(const CpuOptions& options)
    : threads_(checked(options).threads > 0 ? options.threads : available_cpus()),
      isa_(options.isa),
      direct_convolutions_(options.direct_convolutions),
      allocator_(std::make_shared<CachingAllocator>()),
      convolutions_(std::make_unique<kernels::CpuConvolutions>(*this)) {}

CpuContext::~CpuContext() = default;

Layout CpuContext::preferred_layout(std::int64_t channels) const {
  const int block = kernels::CpuConvolutions::preferred_block(isa_);
  if (block == 1 || channels % block != 0) return Layout::plain;
  return block == 16 ? Layout::blocked16 : Layout::blocked8;
}

}  // namespace collar
