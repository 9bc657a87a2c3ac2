// SPDX-License-Identifier: Apache-2.0
// Tensor: shared storage, an element type, a logical shape, a layout and an offset. A Tensor is a
// handle; copies share the bytes and the gradient. A tensor is either on the host, bound to nothing
// (what loaders and files make), or bound to the context of a Runtime, where operations run; to()
// takes it there, without a copy if the context is the host's CPU. A tensor may outlive its
// Runtime: its elements stay, but no operation takes it any more.
//
// Threads: handles of one tensor, its views and its graph belong to one thread at a time; different
// tensors may be used on different threads, each context on one of them at a time. Operations may
// return before a device has done its work. What reads elements on the host waits for it: data(),
// to_vector(), item(), to_host(), copy_from() a tensor of another device. The CPU is always done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/view.hpp"
#include "kernels/runtime/packed_weights.hpp"
#include "kernels/runtime/runtime.hpp"

namespace collar {

namespace autograd {
struct TensorState;  // engine/autograd/state.hpp: what a handle points to
}

class Tensor {
 public:
  /// An undefined tensor: "no bias", "no gradient yet".
  Tensor() = default;

  /// Uninitialised. Without a context the memory is the host's; with one it comes from the
  /// context's allocator.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32,
                      DeviceContext* context = nullptr, Layout layout = Layout::plain);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32,
                      DeviceContext* context = nullptr);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
                     DeviceContext* context = nullptr);
  /// On the host, with a copy of the values.
  template <typename T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <typename T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }
  static Tensor scalar(float value) { return from<float>({value}, {}); }
  /// Foreign memory (an arena, a mapped file); `owner` is kept until the last handle is gone.
  static Tensor adopt(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner,
                      DeviceContext* context = nullptr, Layout layout = Layout::plain);

  bool defined() const { return state_ != nullptr; }
  explicit operator bool() const { return defined(); }

  const Shape& shape() const;
  std::int64_t size(int dimension) const { return shape()[dimension]; }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  DType dtype() const;
  Layout layout() const;
  std::size_t bytes() const;
  /// Null for a tensor on the host that is bound to no context.
  DeviceContext* context() const;
  Device device() const;

  /// The elements as seen by kernels.
  View view();
  ConstView view() const;
  /// Host-accessible elements, in storage order. Throws ShapeError if T is not the element type.
  template <typename T>
  T* data();
  template <typename T>
  const T* data() const;
  /// A copy of the elements in logical (row-major) order.
  template <typename T>
  std::vector<T> to_vector() const;
  /// The only element, converted to double. Throws ShapeError if there is not exactly one.
  double item() const;

  /// The same values bound to a context; shares the bytes where the device allows it. Not
  /// differentiable.
  Tensor to(DeviceContext& context) const;
  /// The same values on the host, bound to nothing.
  Tensor to_host() const;
  /// Takes this tensor itself to the context: every handle of it follows. How parameters get to
  /// their device.
  void move_to(DeviceContext& context);
  /// A copy with storage of its own. Not differentiable.
  Tensor clone() const;
  /// The same bytes without history; shares the version counter.
  Tensor detach() const;
  /// Rows [begin, end) of dimension 0, sharing the bytes. Plain layout. Not differentiable.
  Tensor slice(std::int64_t begin, std::int64_t end) const;
  /// The same bytes under another shape. Plain layout. Not differentiable (engine/ops has the op of
  /// that name).
  Tensor viewed_as(const Shape& shape) const;
  /// Copies the elements of `source` (same shape; plain or equal layout) into this storage,
  /// converting the type. Counts as a change in place.
  void copy_from(const Tensor& source);
  /// Moves this tensor's values into `place` (same shape and type, plain) and makes every handle of
  /// this tensor use those bytes from now on: how parameters move into an arena.
  void rehome(Tensor place);
  /// Whether no other handle, view or saved copy shares these bytes, so that nobody would notice if
  /// they changed.
  bool is_sole_owner() const;

  /// The version number counts changes in place. Whoever writes through view() or data() after the
  /// tensor was used in a recorded operation says so.
  std::uint64_t version() const;
  void changed_in_place();
  /// The master, its version and the place of its packed copies.
  Weight as_weight() const;

  // Automatic differentiation: engine/autograd/.
  bool requires_grad() const;
  /// Only for leaves (tensors no recorded operation made) of floating type. Throws AutogradError
  /// otherwise.
  void set_requires_grad(bool required);
  bool is_leaf() const;
  /// The gradient of a leaf; undefined before the first backward pass and after zero_grad().
  Tensor grad() const;
  /// Forgets the gradient. Its storage stays and is overwritten by the next contribution, which
  /// whoever has kept grad() will see: clone() what has to last.
  void zero_grad();
  /// Where the gradient is to be written from now on: a plain view, inside an arena, of this
  /// tensor's shape, type and context. What is there counts as no gradient until a backward pass
  /// has written it, or set_grad_valid() says otherwise; a gradient of before is forgotten. Throws
  /// ShapeError for a place that does not fit.
  void set_grad_storage(Tensor storage);
  Tensor grad_storage() const;
  /// Declares grad_storage() valid or not, for whoever writes the arena itself.
  void set_grad_valid(bool valid);
  /// Called once in each backward pass when this leaf's last contribution is in. An empty function
  /// removes it.
  void set_grad_hook(std::function<void(const Tensor& leaf)> hook);
  /// Runs the recorded operations backwards from this scalar, on this thread, hooks too. A recorded
  /// graph can be run once; a run that throws has used up what it has visited, and leaves gradients
  /// that it had finished.
  void backward() const;

  const std::shared_ptr<autograd::TensorState>& state() const { return state_; }
  explicit Tensor(std::shared_ptr<autograd::TensorState> state) : state_(std::move(state)) {}

 private:
  void check_type(DType wanted) const;
  void* raw_data() const;
  std::shared_ptr<autograd::TensorState> state_;
};

/// "f32 [2, 3] on cpu"
std::string describe(const Tensor& tensor);

/// Whether operations are recorded on this thread. Off inside the lifetime of a NoGrad, which may
/// be nested and ends on the thread it began on; other threads go on recording.
bool grad_enabled();
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

template <typename T>
T* Tensor::data() {
  check_type(dtype_of<T>);
  return static_cast<T*>(raw_data());
}
template <typename T>
const T* Tensor::data() const {
  check_type(dtype_of<T>);
  return static_cast<const T*>(raw_data());
}

}  // namespace collar
