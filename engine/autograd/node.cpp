// SPDX-License-Identifier: Apache-2.0
#include "engine/autograd/node.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "engine/autograd/state.hpp"
#include "kernels/core/error.hpp"

namespace collar::autograd {
namespace {

// Orders the nodes of all graphs by the time they were recorded. Only the order within one graph
// matters.
std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Saved::Saved(const Tensor& tensor) {
  if (!tensor.defined()) return;
  tensor_ = tensor.detach();
  version_ = tensor.version();
}

const Tensor& Saved::get() const {
  if (tensor_.defined() && tensor_.version() != version_) {
    throw AutogradError(
        fmt::format("a tensor needed by the backward pass ({}) was changed in place after it was "
                    "used: version {} is here, version "
                    "{} was used; change a clone(), or change it after backward()",
                    describe(tensor_), tensor_.version(), version_));
  }
  return tensor_;
}

// A chain of nodes is taken apart in a loop: a graph may be deeper than the stack.
Node::~Node() {
  std::vector<std::shared_ptr<Node>> doomed;
  const auto take = [&doomed](Node& node) {
    for (Input& input : node.inputs) {
      if (input.node) doomed.push_back(std::move(input.node));
    }
  };
  take(*this);
  while (!doomed.empty()) {
    const std::shared_ptr<Node> node = std::move(doomed.back());
    doomed.pop_back();
    if (node.use_count() == 1) take(*node);
  }
}

bool wants_grad(std::initializer_list<const Tensor*> inputs) {
  if (!grad_enabled()) return false;
  for (const Tensor* input : inputs) {
    if (input->defined() && input->requires_grad()) return true;
  }
  return false;
}

Tensor record(const char* op, Tensor output, const std::vector<Tensor>& inputs,
              BackwardFunction backward, std::size_t max_terms) {
  if (!grad_enabled()) return output;
  auto node = std::make_shared<Node>();
  bool wanted = false;
  for (const Tensor& input : inputs) {
    Node::Input edge;
    if (input.defined() && input.requires_grad()) {
      edge.node = input.state()->producer;
      if (!edge.node) edge.leaf = input.state();
      edge.shape = input.shape();
      edge.dtype = input.dtype();
      wanted = true;
    }
    node->inputs.push_back(std::move(edge));
  }
  if (!wanted) return output;
  node->op = op;
  node->sequence = next_sequence();
  node->backward = std::move(backward);
  node->max_terms = max_terms;
  node->dtype = output.dtype();
  node->layout = output.layout();
  node->context = output.context();
  output.state()->requires_grad = true;
  output.state()->producer = std::move(node);
  return output;
}

}  // namespace collar::autograd
