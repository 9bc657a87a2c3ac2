// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise.hpp"

#include <array>
#include <type_traits>

#include "kernels/core/dispatch.hpp"
#include "kernels/core/element.hpp"
#include "kernels/core/image_index.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {
namespace {

const PointwiseLoops& loops(const CpuContext& context) {
  return loops_for(context.isa()).pointwise;
}

template <typename T>
T converted(double value) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Whether the loops of cpu/vector/ know the type; the others are worked on one by one.
bool has_vector_loops(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16;
}

/// What a floating type is computed in.
template <typename T>
using Arithmetic = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename Number>
Number apply(BinaryOp op, Number a, Number b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::subtract:
      return a - b;
    case BinaryOp::multiply:
      return a * b;
  }
  return 0;
}

/// Elements from one index to the next along each dimension of y; 0 where the operand repeats.
using Strides = std::array<std::int64_t, Shape::kMaxRank>;
Strides broadcast_strides(const Shape& operand, const Shape& y) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int i = 1; i <= operand.rank(); ++i) {
    const std::int64_t extent = operand[-i];
    if (extent != 1) strides[static_cast<std::size_t>(y.rank() - i)] = stride;
    stride *= extent;
  }
  return strides;
}

/// Where row `row` (all dimensions of y but the last) begins in an operand.
std::int64_t row_offset(std::int64_t row, const Shape& y, const Strides& strides) {
  std::int64_t offset = 0;
  for (int i = y.rank() - 2; i >= 0; --i) {
    offset += row % y[i] * strides[static_cast<std::size_t>(i)];
    row /= y[i];
  }
  return offset;
}

template <typename T>
void binary_broadcast(CpuContext& context, BinaryOp op, const ConstView& a, const ConstView& b,
                      const View& y) {
  using Number = Arithmetic<T>;
  const Shape shape = y.shape.rank() == 0 ? Shape{1} : y.shape;
  const Strides a_strides = broadcast_strides(a.shape, shape);
  const Strides b_strides = broadcast_strides(b.shape, shape);
  const auto last = static_cast<std::size_t>(shape.rank() - 1);
  const std::int64_t columns = shape[-1];
  parallel_for(context, shape.numel() / columns, columns, [&](std::int64_t row) {
    const std::int64_t a_row = row_offset(row, shape, a_strides);
    const std::int64_t b_row = row_offset(row, shape, b_strides);
    for (std::int64_t i = 0; i < columns; ++i) {
      const auto left = static_cast<Number>(a.as<T>()[a_row + i * a_strides[last]]);
      const auto right = static_cast<Number>(b.as<T>()[b_row + i * b_strides[last]]);
      y.as<T>()[row * columns + i] = T(apply(op, left, right));
    }
  });
}

}  // namespace

void fill_host(View y, double value) {
  dispatch_any(y.dtype, [&]<typename T>(std::type_identity<T>) {
    std::fill_n(y.as<T>(), y.numel(), converted<T>(value));
  });
}

void fill(CpuContext& context, View y, double value) {
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    fill_host({at(y, begin), y.dtype, {end - begin}}, value);
  });
}

void scale(CpuContext& context, ConstView x, View y, float factor) {
  if (has_vector_loops(y.dtype)) {
    return parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
      loops(context).scale(y.dtype, end - begin, at(x, begin), at(y, begin), factor);
    });
  }
  dispatch_floating(y.dtype, [&]<typename T>(std::type_identity<T>) {
    parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        y.as<T>()[i] = T(static_cast<Arithmetic<T>>(x.as<T>()[i]) * Arithmetic<T>{factor});
      }
    });
  });
}

void add_in_place(CpuContext& context, View y, ConstView x) {
  binary(context, BinaryOp::add, y, x, y);
}

void binary(CpuContext& context, BinaryOp op, ConstView a, ConstView b, View y) {
  if (y.numel() == 0) return;
  if (a.shape != y.shape || b.shape != y.shape || !has_vector_loops(y.dtype)) {
    return dispatch_floating(y.dtype, [&]<typename T>(std::type_identity<T>) {
      binary_broadcast<T>(context, op, a, b, y);
    });
  }
  const PointwiseLoops& table = loops(context);
  const auto loop = op == BinaryOp::add        ? table.add
                    : op == BinaryOp::subtract ? table.subtract
                                               : table.multiply;
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    loop(y.dtype, end - begin, at(a, begin), at(b, begin), at(y, begin));
  });
}

void relu_forward(CpuContext& context, ConstView x, View y, View mask) {
  parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
    std::uint8_t* bits = mask ? mask.as<std::uint8_t>() + begin / 8 : nullptr;
    loops(context).relu(y.dtype, end - begin, at(x, begin), at(y, begin), bits);
  });
}

void relu_backward(CpuContext& context, ConstView dy, ConstView mask, View dx) {
  parallel_ranges(context, dx.numel(), [&](std::int64_t begin, std::int64_t end) {
    loops(context).masked_sum(dx.dtype, end - begin, at(dy, begin), nullptr,
                              mask.as<std::uint8_t>() + begin / 8, at(dx, begin));
  });
}

void dropout(CpuContext& context, ConstView x, View y, double p, const DropoutKey& key) {
  const DropoutStream stream(key);
  const float scale = p < 1 ? 1.0f / static_cast<float>(1 - p) : 0.0f;
  // Logical elements [begin, end), stored from `position` on, `stride` apart.
  const auto drop = [&](std::int64_t begin, std::int64_t end, std::int64_t position,
                        std::int64_t stride) {
    PhiloxCounter words{};
    for (std::int64_t i = begin; i < end; ++i, position += stride) {
      if (i == begin || i % 4 == 0) words = stream.words(static_cast<std::uint64_t>(i / 4));
      const bool kept = double{unit_float(words[static_cast<std::size_t>(i % 4)])} >= p;
      write_float(y, position, read_float(x, position) * (kept ? scale : 0.0f));
    }
  };
  if (y.layout == Layout::plain) {
    return parallel_ranges(context, y.numel(), [&](std::int64_t begin, std::int64_t end) {
      drop(begin, end, begin, 1);
    });
  }
  const ImageIndex index(y.shape, y.layout);
  const std::int64_t channels = y.shape[1];
  const std::int64_t pixels = y.shape[2] * y.shape[3];
  parallel_for(context, y.shape[0] * channels, pixels, [&](std::int64_t plane) {
    drop(plane * pixels, (plane + 1) * pixels, index.channel(plane / channels, plane % channels),
         index.pixel_stride());
  });
}

}  // namespace collar::kernels
