// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/reduce.hpp"

#include <numeric>
#include <span>
#include <vector>

#include "engine/autograd/node.hpp"
#include "engine/ops/broadcast.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"
#include "kernels/reduce.hpp"

namespace collar {
namespace {

using ops::require;

Tensor reduced(const char* op, const Tensor& x, std::span<const int> dimensions, bool keep,
               bool average) {
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op, "{}: expected f32 or bf16",
          describe(x));
  DeviceContext& context = ops::context_of(op, {&x});
  std::vector<bool> dropped(static_cast<std::size_t>(x.rank()), false);
  for (const int dimension : dimensions) {
    const int i = dimension < 0 ? dimension + x.rank() : dimension;
    require(i >= 0 && i < x.rank() && !dropped[static_cast<std::size_t>(i)], op,
            "dimension {} of {} does not exist or is named twice", dimension, describe(x));
    dropped[static_cast<std::size_t>(i)] = true;
  }
  std::vector<std::int64_t> kept_extents;
  std::vector<std::int64_t> result_extents;
  std::int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i) {
    const bool drop = dropped[static_cast<std::size_t>(i)];
    if (drop) count *= x.size(i);
    kept_extents.push_back(drop ? 1 : x.size(i));
    if (!drop || keep) result_extents.push_back(kept_extents.back());
  }
  const double factor = average ? 1.0 / static_cast<double>(count) : 1.0;
  const Shape kept(kept_extents);
  const Tensor plain = converted(x, Layout::plain);
  Tensor y = Tensor::empty(Shape(result_extents), x.dtype(), &context);
  View y_view = y.view();
  y_view.shape = kept;
  ops::on(context, [&](auto& device) { kernels::sum_to(device, plain.view(), y_view, factor); });
  return autograd::record(op, y, {x},
                          [factor, kept, shape = x.shape()](autograd::BackwardCall& call) {
                            const Tensor dy = ops::scaled(call.dy(), factor);
                            call.give(0, ops::expanded(dy.viewed_as(kept), shape));
                          });
}

std::vector<int> all_dimensions(const Tensor& x) {
  std::vector<int> dimensions(static_cast<std::size_t>(x.rank()));
  std::iota(dimensions.begin(), dimensions.end(), 0);
  return dimensions;
}

}  // namespace

Tensor sum(const Tensor& x) {
  return reduced("sum", x, all_dimensions(x), false, false);
}
Tensor mean(const Tensor& x) {
  return reduced("mean", x, all_dimensions(x), false, true);
}

Tensor sum(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions) {
  return reduced("sum", x, {dimensions.begin(), dimensions.size()}, keep_dimensions, false);
}

Tensor mean(const Tensor& x, std::initializer_list<int> dimensions, bool keep_dimensions) {
  return reduced("mean", x, {dimensions.begin(), dimensions.size()}, keep_dimensions, true);
}

}  // namespace collar
