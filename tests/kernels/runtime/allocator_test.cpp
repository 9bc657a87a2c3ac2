// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/allocator.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>

#include "kernels/core/error.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;

/// The process may not take more address space than it has now and `more` bytes.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::size_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = used() + more;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  static std::size_t used() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  rlimit before_{};
};

}  // namespace

TEST_CASE("a freed block is handed out again, the last one first") {
  CachingAllocator allocator;
  void* first = allocator.allocate(1000);
  void* second = allocator.allocate(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % CachingAllocator::kAlignment == 0);
  CHECK(first != second);
  allocator.deallocate(first);
  allocator.deallocate(second);
  CHECK(allocator.allocate(1001) == second);  // sizes are rounded up a little
  CHECK(allocator.allocate(1000) == first);
  CHECK(allocator.statistics().system_allocations == 2);
}

TEST_CASE("statistics tell what is held, in use, and was in use at most") {
  CachingAllocator allocator;
  void* large = allocator.allocate(4 * kMega);
  void* small = allocator.allocate(kMega);
  CHECK(allocator.statistics().bytes_in_use == 5 * kMega);
  allocator.deallocate(large);
  CHECK(allocator.statistics().bytes_in_use == kMega);
  CHECK(allocator.statistics().peak_bytes_in_use == 5 * kMega);
  CHECK(allocator.statistics().bytes_reserved == 5 * kMega);
  allocator.trim();
  CHECK(allocator.statistics().bytes_reserved == kMega);
  allocator.deallocate(small);
  allocator.deallocate(nullptr);
  allocator.trim();
  CHECK(allocator.statistics().bytes_reserved == 0);
}

TEST_CASE("more memory than there is, is an error with the sizes") {
  CachingAllocator allocator;
  void* some = allocator.allocate(kMega);
  CHECK_THROWS_WITH(allocator.allocate(std::size_t{1} << 52),
                    Contains("4503599627370496 bytes wanted, 1048576 in use"));
  CHECK_THROWS_AS(allocator.allocate(std::numeric_limits<std::size_t>::max()), DeviceError);
  CHECK_THROWS_AS(allocator.allocate(std::numeric_limits<std::size_t>::max() / 2), DeviceError);
  allocator.deallocate(some);
}

TEST_CASE("the cache is given back before memory is said to be out") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  COLLAR_SKIP("sanitizers keep memory that is freed");
#endif
  CachingAllocator allocator;
  allocator.deallocate(allocator.allocate(256 * kMega));
  {
    const AddressSpaceLimit limit(64 * kMega);
    allocator.deallocate(allocator.allocate(200 * kMega));
    CHECK_THROWS_AS(allocator.allocate(1024 * kMega), DeviceError);
  }
  CHECK(allocator.statistics().bytes_reserved == 0);
}

TEST_CASE("shared memory outlives the handle of its allocator") {
  auto allocator = std::make_shared<CachingAllocator>();
  const std::weak_ptr<CachingAllocator> watched = allocator;
  std::shared_ptr<std::byte> memory = allocator->allocate_shared(kMega);
  allocator.reset();
  CHECK_FALSE(watched.expired());
  std::memset(memory.get(), 1, kMega);
  memory.reset();
  CHECK(watched.expired());
}
