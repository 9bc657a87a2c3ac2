// SPDX-License-Identifier: Apache-2.0
#include "engine/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "engine/autograd/state.hpp"
#include "kernels/cast.hpp"
#include "kernels/core/error.hpp"
#include "kernels/core/image_index.hpp"
#include "kernels/pointwise.hpp"

namespace collar {
namespace {

using autograd::TensorState;

thread_local bool grad_mode = true;

std::shared_ptr<std::byte> allocate(std::size_t bytes, DeviceContext* context) {
  if (context != nullptr) return allocator_of(*context).allocate_shared(bytes);
  constexpr std::size_t kAlign = CachingAllocator::kAlignment;
  const std::size_t rounded = std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlign, rounded));
  if (block == nullptr)
    throw DeviceError(fmt::format("out of memory: {} bytes wanted on the host", rounded));
  return {block, [](std::byte* memory) { std::free(memory); }};
}

void check_layout(const Shape& shape, Layout layout) {
  if (layout == Layout::plain) return;
  if (shape.rank() != 4 || shape[1] % block_of(layout) != 0) {
    throw ShapeError(fmt::format(
        "a tensor of shape {} cannot have the layout {}: that takes rank 4 and channels "
        "divisible by {}",
        to_string(shape), name_of(layout), block_of(layout)));
  }
}

DeviceContext& context_for_kernels(const Tensor& tensor, const char* what) {
  if (tensor.context() == nullptr) {
    throw ShapeError(fmt::format(
        "{}: {} is on the host and bound to no context; use to(runtime.context()) first", what,
        describe(tensor)));
  }
  return *tensor.context();
}

TensorState& checked(const std::shared_ptr<TensorState>& state) {
  if (!state) throw ShapeError("an undefined tensor was used");
  return *state;
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, DeviceContext* context, Layout layout) {
  check_layout(shape, layout);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.numel()), size_of(dtype), &bytes) ||
      bytes > PTRDIFF_MAX - CachingAllocator::kAlignment) {
    throw ShapeError(fmt::format("a {} tensor of shape {} is larger than memory can be",
                                 name_of(dtype), to_string(shape)));
  }
  auto state = std::make_shared<TensorState>();
  state->storage = allocate(bytes, context);
  state->dtype = dtype;
  state->shape = shape;
  state->layout = layout;
  state->context = context;
  return Tensor(std::move(state));
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, DeviceContext* context) {
  return full(shape, 0, dtype, context);
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, DeviceContext* context) {
  Tensor result = empty(shape, dtype, context);
  if (context != nullptr) {
    std::visit([&](auto& device) { kernels::fill(device, result.view(), value); }, *context);
  } else {
    kernels::fill_host(result.view(), value);
  }
  return result;
}

template <typename T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.numel()) {
    throw ShapeError(
        fmt::format("{} values do not fill the shape {}", values.size(), to_string(shape)));
  }
  Tensor result = empty(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}

template Tensor Tensor::from(std::span<const float>, const Shape&);
template Tensor Tensor::from(std::span<const double>, const Shape&);
template Tensor Tensor::from(std::span<const bfloat16>, const Shape&);
template Tensor Tensor::from(std::span<const float16>, const Shape&);
template Tensor Tensor::from(std::span<const std::uint8_t>, const Shape&);
template Tensor Tensor::from(std::span<const std::int8_t>, const Shape&);
template Tensor Tensor::from(std::span<const std::int32_t>, const Shape&);
template Tensor Tensor::from(std::span<const std::int64_t>, const Shape&);
template Tensor Tensor::from(std::span<const bool>, const Shape&);

Tensor Tensor::adopt(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner,
                     DeviceContext* context, Layout layout) {
  check_layout(shape, layout);
  auto state = std::make_shared<TensorState>();
  state->storage = std::shared_ptr<std::byte>(std::move(owner), static_cast<std::byte*>(data));
  state->dtype = dtype;
  state->shape = shape;
  state->layout = layout;
  state->context = context;
  return Tensor(std::move(state));
}

const Shape& Tensor::shape() const {
  return checked(state_).shape;
}
DType Tensor::dtype() const {
  return checked(state_).dtype;
}
Layout Tensor::layout() const {
  return checked(state_).layout;
}
DeviceContext* Tensor::context() const {
  return checked(state_).context;
}
std::size_t Tensor::bytes() const {
  return static_cast<std::size_t>(numel()) * size_of(dtype());
}
Device Tensor::device() const {
  return context() == nullptr ? Device{} : device_of(*context());
}

void* Tensor::raw_data() const {
  const TensorState& state = checked(state_);
  return state.storage.get() + state.offset;
}

View Tensor::view() {
  return {raw_data(), dtype(), shape(), layout()};
}
ConstView Tensor::view() const {
  return {raw_data(), dtype(), shape(), layout()};
}

void Tensor::check_type(DType wanted) const {
  if (dtype() != wanted) {
    throw ShapeError(fmt::format("{} read as {}", describe(*this), name_of(wanted)));
  }
}

template <typename T>
std::vector<T> Tensor::to_vector() const {
  const T* values = data<T>();
  std::vector<T> result(static_cast<std::size_t>(numel()));
  if (layout() == Layout::plain) {
    std::copy(values, values + result.size(), result.begin());
    return result;
  }
  for (std::int64_t i = 0; i < numel(); ++i) {
    result[static_cast<std::size_t>(i)] = values[kernels::storage_position(shape(), layout(), i)];
  }
  return result;
}

template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<bfloat16> Tensor::to_vector() const;
template std::vector<float16> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;
template std::vector<std::int8_t> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

double Tensor::item() const {
  if (numel() != 1)
    throw ShapeError(fmt::format("item(): {} does not have exactly one element", describe(*this)));
  switch (dtype()) {
    case DType::f32:
      return *data<float>();
    case DType::f64:
      return *data<double>();
    case DType::bf16:
      return static_cast<float>(*data<bfloat16>());
    case DType::f16:
      return static_cast<float>(*data<float16>());
    case DType::u8:
      return *data<std::uint8_t>();
    case DType::i8:
      return *data<std::int8_t>();
    case DType::i32:
      return *data<std::int32_t>();
    case DType::i64:
      return static_cast<double>(*data<std::int64_t>());
    case DType::boolean:
      return *data<bool>() ? 1 : 0;
  }
  return 0;
}

bool Tensor::is_sole_owner() const {
  return state_.use_count() == 1 && state_->storage.use_count() == 1;
}

Tensor Tensor::to(DeviceContext& target) const {
  if (context() == &target) return *this;
  Tensor result = detach();
  result.move_to(target);
  return result;
}

Tensor Tensor::to_host() const {
  Tensor result = detach();
  result.state_->context = nullptr;
  return result;
}

// Host and CPU share their memory, so binding is all there is to do; a device with memory of its
// own copies here.
void Tensor::move_to(DeviceContext& target) {
  TensorState& state = checked(state_);
  if (!is_leaf())
    throw AutogradError("move_to: only leaves move; this tensor was made by a recorded operation");
  state.context = &target;
  state.packed = std::make_shared<PackedWeights>();
  if (state.grad.defined()) state.grad.move_to(target);
}

Tensor Tensor::clone() const {
  Tensor result = empty(shape(), dtype(), context(), layout());
  std::memcpy(result.raw_data(), raw_data(), bytes());
  return result;
}

Tensor Tensor::detach() const {
  auto state = std::make_shared<TensorState>(checked(state_));
  state->requires_grad = false;
  state->producer = nullptr;
  state->grad = Tensor();
  state->grad_valid = false;
  state->grad_hook = nullptr;
  return Tensor(std::move(state));
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t end) const {
  if (rank() == 0 || begin < 0 || end < begin || end > size(0) || layout() != Layout::plain) {
    throw ShapeError(
        fmt::format("slice: rows {} to {} of {} do not exist, or its layout is not plain", begin,
                    end, describe(*this)));
  }
  Tensor result = detach();
  const std::size_t row = size(0) == 0 ? 0 : bytes() / static_cast<std::size_t>(size(0));
  result.state_->offset += row * static_cast<std::size_t>(begin);
  result.state_->shape = shape().with(0, end - begin);
  result.state_->packed = std::make_shared<PackedWeights>();
  return result;
}

Tensor Tensor::viewed_as(const Shape& shape) const {
  if (shape.numel() != numel() || layout() != Layout::plain) {
    throw ShapeError(fmt::format("{} ({}) cannot be viewed as {}", describe(*this),
                                 name_of(layout()), to_string(shape)));
  }
  Tensor result = detach();
  result.state_->shape = shape;
  result.state_->packed = std::make_shared<PackedWeights>();
  return result;
}

void Tensor::copy_from(const Tensor& source) {
  if (!(shape() == source.shape())) {
    throw ShapeError(fmt::format("copy_from: {} into {}", describe(source), describe(*this)));
  }
  if (layout() == source.layout() && dtype() == source.dtype()) {
    std::memmove(raw_data(), source.raw_data(), bytes());
  } else {
    DeviceContext& target = context_for_kernels(context() == nullptr ? source : *this, "copy_from");
    std::visit(
        [&](auto& device) {
          if (layout() == source.layout()) {
            kernels::cast(device, source.view(), view());
          } else {
            kernels::convert_layout(device, source.view(), view());
          }
        },
        target);
  }
  changed_in_place();
}

void Tensor::rehome(Tensor place) {
  TensorState& state = checked(state_);
  if (!is_leaf() || !(place.shape() == state.shape) || place.dtype() != state.dtype ||
      place.layout() != Layout::plain || state.layout != Layout::plain) {
    throw ShapeError(
        fmt::format("rehome: {} does not fit into {}", describe(*this), describe(place)));
  }
  std::memcpy(place.raw_data(), raw_data(), bytes());
  state.storage = place.state_->storage;
  state.offset = place.state_->offset;
  state.context = place.state_->context;
  changed_in_place();
}

std::uint64_t Tensor::version() const {
  return *checked(state_).version;
}
void Tensor::changed_in_place() {
  ++*checked(state_).version;
}

Weight Tensor::as_weight() const {
  return {view(), version(), checked(state_).packed.get()};
}

bool Tensor::requires_grad() const {
  return checked(state_).requires_grad;
}
bool Tensor::is_leaf() const {
  return checked(state_).producer == nullptr;
}

void Tensor::set_requires_grad(bool required) {
  TensorState& state = checked(state_);
  if (!is_leaf()) {
    throw AutogradError("set_requires_grad: only leaves can be told; detach() a result first");
  }
  if (required && !is_floating(state.dtype)) {
    throw AutogradError(fmt::format("set_requires_grad: {} has no gradient; only floating types do",
                                    describe(*this)));
  }
  state.requires_grad = required;
}

Tensor Tensor::grad() const {
  return checked(state_).grad_valid ? state_->grad : Tensor();
}

void Tensor::zero_grad() {
  TensorState& state = checked(state_);
  state.grad_valid = false;
}

void Tensor::set_grad_storage(Tensor storage) {
  TensorState& state = checked(state_);
  if (!(storage.shape() == state.shape) || storage.dtype() != state.dtype ||
      storage.layout() != Layout::plain || storage.context() != state.context) {
    throw ShapeError(fmt::format("set_grad_storage: the gradient of {} does not fit into {}",
                                 describe(*this), describe(storage)));
  }
  state.grad = std::move(storage);
  state.grad_valid = false;
}

Tensor Tensor::grad_storage() const {
  return checked(state_).grad;
}
void Tensor::set_grad_valid(bool valid) {
  checked(state_).grad_valid = valid;
}

void Tensor::set_grad_hook(std::function<void(const Tensor&)> hook) {
  checked(state_).grad_hook = std::move(hook);
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return fmt::format("{} {} on {}", name_of(tensor.dtype()), to_string(tensor.shape()),
                     tensor.context() == nullptr ? "the host" : to_string(tensor.device()));
}

bool grad_enabled() {
  return grad_mode;
}
NoGrad::NoGrad() : previous_(std::exchange(grad_mode, false)) {}
NoGrad::~NoGrad() {
  grad_mode = previous_;
}

}  // namespace collar
