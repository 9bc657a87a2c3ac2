// SPDX-License-Identifier: Apache-2.0
// What a Tensor handle points to: bytes, their meaning, and the tensor's place in the recorded
// graph. Only engine/ looks inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/tensor.hpp"

namespace collar::autograd {

struct Node;

struct TensorState {
  std::shared_ptr<std::byte> storage;  // the deleter gives the bytes back to where they came from
  std::size_t offset = 0;              // bytes into storage
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;
  DeviceContext* context = nullptr;
  std::shared_ptr<std::uint64_t> version = std::make_shared<std::uint64_t>(0);  // shared by views
  std::shared_ptr<PackedWeights> packed = std::make_shared<PackedWeights>();    // shared by views

  bool requires_grad = false;
  std::shared_ptr<Node> producer;  // null for leaves
  Tensor grad;                     // leaves: place of the gradient
  bool grad_valid = false;
  std::function<void(const Tensor&)> grad_hook;
};

}  // namespace collar::autograd
