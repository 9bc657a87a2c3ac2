// SPDX-License-Identifier: Apache-2.0
// Shape: up to eight extents, outermost first, stored in place. Always the logical shape (N, C, H,
// W for images), whatever the layout of the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace collar {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  /// Rank 0: a scalar of one element.
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// Extent i; a negative i counts from the end. Throws ShapeError out of range.
  std::int64_t operator[](int i) const;
  /// Number of elements; 1 for rank 0. The constructor has made sure that it fits in 63 bits.
  std::int64_t numel() const;
  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  /// The shape with extent i replaced.
  Shape with(int i, std::int64_t extent) const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  int index_of(int i) const;

  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// "[2, 3, 224, 224]"
std::string to_string(const Shape& shape);

}  // namespace collar
