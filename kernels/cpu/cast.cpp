// SPDX-License-Identifier: Apache-2.0
#include "kernels/cast.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/core/dispatch.hpp"
#include "kernels/core/element.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {
namespace {

template <typename T>
constexpr bool kHalf = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
template <typename T>
constexpr bool kFloating = kHalf<T> || std::is_floating_point_v<T>;

/// A truncated float as an integer: out of range it is the nearest, NaN is 0.
template <typename To, typename From>
To truncated(From value) {
  constexpr auto lowest = static_cast<From>(std::numeric_limits<To>::lowest());
  constexpr auto highest = static_cast<From>(std::numeric_limits<To>::max());
  if (value != value) return 0;
  if (value <= lowest) return std::numeric_limits<To>::lowest();
  if (value >= highest) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <typename To, typename From>
To element(From value) {
  if constexpr (kHalf<From>) {
    return element<To>(static_cast<float>(value));
  } else if constexpr (kHalf<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (kFloating<From> && !kFloating<To>) {
    return truncated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

void cast_range(const PointwiseLoops& loops, const ConstView& x, const View& y, std::int64_t begin,
                std::int64_t end) {
  if (x.dtype == y.dtype) {
    std::memmove(at(y, begin), at(x, begin),
                 static_cast<std::size_t>(end - begin) * size_of(x.dtype));
  } else if (x.dtype == DType::bf16 && y.dtype == DType::f32) {
    loops.widen(end - begin, x.as<bfloat16>() + begin, y.as<float>() + begin);
  } else if (x.dtype == DType::f32 && y.dtype == DType::bf16) {
    loops.narrow(end - begin, x.as<float>() + begin, y.as<bfloat16>() + begin);
  } else {
    dispatch_any(x.dtype, [&]<typename From>(std::type_identity<From>) {
      dispatch_any(y.dtype, [&]<typename To>(std::type_identity<To>) {
        for (std::int64_t i = begin; i < end; ++i) {
          y.as<To>()[i] = element<To>(x.as<From>()[i]);
        }
      });
    });
  }
}

}  // namespace

void cast(CpuContext& context, ConstView x, View y) {
  const PointwiseLoops& loops = loops_for(context.isa()).pointwise;
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    cast_range(loops, x, y, begin, end);
  });
}

}  // namespace collar::kernels
