// SPDX-License-Identifier: Apache-2.0
// The recorded graph. An operation that wants a gradient calls record() with its output, its inputs
// and a function that turns the output's gradient into the inputs'. Each node has one
// differentiable output. Tensor::backward() runs the nodes from a queue ordered by descending
// sequence number, so the order is the reverse of recording, always. A graph belongs to one thread
// at a time; graphs without a common tensor may be built and run on several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/tensor.hpp"

namespace collar::autograd {

struct Node;

/// A tensor kept for the backward pass, with the version it had. Holds no history, so keeping an
/// operation's own output makes no cycle.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor);
  /// The tensor. Throws AutogradError if it has been changed in place since.
  const Tensor& get() const;
  explicit operator bool() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  std::uint64_t version_ = 0;
};

/// Where a kernel writes a gradient: plain, of the input's type and shape.
struct GradientTarget {
  View view;
  bool accumulate;  ///< add to what is there instead of overwriting it
};

/// One run of a node's backward function.
class BackwardCall {
 public:
  explicit BackwardCall(Node& node) : node_(node) {}

  /// The gradient of the output, with the output's shape, type and layout.
  const Tensor& dy() const { return terms_.front(); }
  /// The same as up to `max_terms` summands, for operations that add while they read.
  std::span<const Tensor> dy_terms() const { return terms_; }
  /// Whether the gradient of input i is wanted. Asking for an input that was left out is allowed.
  bool needs(std::size_t i) const;
  /// Hands over the gradient of input i: its shape, any layout. The engine may write to it later.
  void give(std::size_t i, Tensor gradient);
  /// Lets a kernel write the gradient of input i where it belongs: for a leaf that is its place in
  /// an arena.
  GradientTarget target(std::size_t i);

 private:
  friend class BackwardRun;

  Node& node_;
  std::vector<Tensor> terms_;
  std::vector<std::optional<Tensor>> given_;
  std::vector<TensorState*> written_;  // leaves whose gradients a kernel writes
};

using BackwardFunction = std::function<void(BackwardCall&)>;

struct Node {
  struct Input {
    std::shared_ptr<Node> node;         // the node that made the input, or
    std::shared_ptr<TensorState> leaf;  // the leaf itself, or neither: no gradient wanted
    Shape shape;
    DType dtype = DType::f32;
  };

  ~Node();

  const char* op = "";
  std::uint64_t sequence = 0;
  std::vector<Input> inputs;
  BackwardFunction backward;
  std::size_t max_terms = 1;
  DType dtype = DType::f32;  // of the output
  Layout layout = Layout::plain;
  DeviceContext* context = nullptr;
  bool released = false;        // has run: what it kept is gone
  std::vector<Tensor> pending;  // gradients that have arrived in the current run
};

/// Whether an operation on these inputs has to be recorded: gradients are enabled and one of them
/// requires one. Undefined tensors may be among them.
bool wants_grad(std::initializer_list<const Tensor*> inputs);

/// Records the operation that made `output` from `inputs`, if it has to be, and returns the output.
/// `op` is a string literal for messages; inputs that were left out are undefined tensors. A
/// backward function that can add up several summands itself says how many it takes.
Tensor record(const char* op, Tensor output, const std::vector<Tensor>& inputs,
              BackwardFunction backward, std::size_t max_terms = 1);

}  // namespace collar::autograd
