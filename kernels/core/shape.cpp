// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/core/error.hpp"

namespace collar {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank) {
    throw ShapeError(
        fmt::format("a shape has at most {} dimensions, got {}", kMaxRank, extents.size()));
  }
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw ShapeError(fmt::format("negative extent {} in a shape", extent));
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw ShapeError(fmt::format("shape [{}] has too many elements", fmt::join(extents, ", ")));
    }
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
}

int Shape::index_of(int i) const {
  const int index = i < 0 ? i + rank_ : i;
  if (index < 0 || index >= rank_) {
    throw ShapeError(fmt::format("dimension {} of shape {} does not exist", i, to_string(*this)));
  }
  return index;
}

std::int64_t Shape::operator[](int i) const {
  return extents_[static_cast<std::size_t>(index_of(i))];
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents()) product *= extent;
  return product;
}

Shape Shape::with(int i, std::int64_t extent) const {
  auto copy = extents_;
  copy[static_cast<std::size_t>(index_of(i))] = extent;
  return Shape(std::span<const std::int64_t>(copy.data(), static_cast<std::size_t>(rank_)));
}

bool operator==(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.extents(), b.extents());
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.extents(), ", "));
}

}  // namespace collar
