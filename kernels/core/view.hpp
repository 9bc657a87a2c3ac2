// SPDX-License-Identifier: Apache-2.0
// What a kernel sees of a tensor: a pointer, an element type, a logical shape and a layout. A view
// owns nothing and checks nothing; the op that made it has checked.
#pragma once

#include "kernels/core/dtype.hpp"
#include "kernels/core/layout.hpp"
#include "kernels/core/shape.hpp"

namespace collar {

struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  std::int64_t numel() const { return shape.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype); }
  /// False for an argument that was left out (a convolution without bias, say).
  explicit operator bool() const { return data != nullptr; }
};

struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t numel() const { return shape.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype); }
  explicit operator bool() const { return data != nullptr; }
  operator ConstView() const {
    return {data, dtype, shape, layout};
  }  // NOLINT: meant to be implicit
};

}  // namespace collar
