// SPDX-License-Identifier: Apache-2.0
// Tensor::backward(): the run of a recorded graph.
#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/autograd/node.hpp"
#include "engine/autograd/state.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"
#include "kernels/core/error.hpp"
#include "kernels/pointwise.hpp"

namespace collar::autograd {
namespace {

void add_in_place(Tensor& sum, const Tensor& term) {
  ops::on(*sum.context(),
          [&](auto& device) { kernels::add_in_place(device, sum.view(), term.view()); });
  sum.changed_in_place();
}

// Folds summands together until at most `limit` are left: the last into the first of the rest, in
// arrival order.
void fold(std::vector<Tensor>& terms, std::size_t limit) {
  while (terms.size() > limit) {
    Tensor last = std::move(terms.back());
    terms.pop_back();
    Tensor& sum = terms.back();
    if (!sum.is_sole_owner()) {
      if (last.is_sole_owner()) {
        std::swap(sum, last);
      } else {
        sum = sum.clone();
      }
    }
    add_in_place(sum, last);
  }
}

}  // namespace

/// Everything one backward pass keeps.
class BackwardRun {
 public:
  explicit BackwardRun(const Tensor& root) {
    const std::shared_ptr<Node>& producer = root.state()->producer;
    discover(*producer);
    queue_.push(producer);
    producer->pending.push_back(Tensor::full(root.shape(), 1.0, root.dtype(), root.context()));
  }

  // Gradients wait only in nodes of the queue. Some are left if the run has thrown.
  ~BackwardRun() {
    for (; !queue_.empty(); queue_.pop()) queue_.top()->pending.clear();
  }
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;

  void run() {
    const NoGrad no_grad;
    while (!queue_.empty()) {
      const std::shared_ptr<Node> node = queue_.top();
      queue_.pop();
      execute(*node);
    }
    // A branch that got no gradient leaves its leaves waiting: they are as ready as they will be.
    for (const auto& leaf : leaves_) {
      if (remaining_uses_.at(leaf.get()) > 0) fire_hook(leaf);
    }
  }

 private:
  struct Earlier {
    bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const {
      return a->sequence < b->sequence;
    }
  };

  // Visits the graph once, counts how often each leaf is used, and refuses a graph that has already
  // run.
  void discover(const Node& root) {
    std::vector<const Node*> nodes{&root};
    std::unordered_set<const Node*> seen{&root};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = *nodes[i];
      if (node.released) {
        throw AutogradError(
            fmt::format("backward: the graph has already been run (at {}), and what it kept is "
                        "gone; run the forward pass again",
                        node.op));
      }
      for (const Node::Input& input : node.inputs) {
        if (input.leaf && ++remaining_uses_[input.leaf.get()] == 1) leaves_.push_back(input.leaf);
        if (input.node && seen.insert(input.node.get()).second) nodes.push_back(input.node.get());
      }
    }
  }

  void execute(Node& node) {
    BackwardCall call(node);
    call.terms_ = std::move(node.pending);
    node.pending.clear();
    for (Tensor& term : call.terms_) term = like_output(node, std::move(term));
    fold(call.terms_, node.max_terms);
    call.given_.resize(node.inputs.size());
    node.released = true;
    const BackwardFunction backward = std::exchange(node.backward, nullptr);
    backward(call);
    call.terms_.clear();
    deliver(node, call);
  }

  static Tensor like_output(const Node& node, Tensor gradient) {
    if (gradient.dtype() == node.dtype && gradient.layout() == node.layout) return gradient;
    return converted(gradient, node.layout, node.dtype);
  }

  void deliver(Node& node, BackwardCall& call) {
    const std::vector<Node::Input> inputs = std::move(node.inputs);
    node.inputs.clear();
    for (TensorState* leaf : call.written_) {
      leaf->grad_valid = true;
      leaf->grad.changed_in_place();
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Node::Input& input = inputs[i];
      if (input.node && call.given_[i]) {
        if (input.node->pending.empty()) queue_.push(input.node);
        input.node->pending.push_back(*std::move(call.given_[i]));
      } else if (input.leaf) {
        if (call.given_[i]) accumulate(*input.leaf, *std::move(call.given_[i]));
        if (--remaining_uses_.at(input.leaf.get()) == 0) fire_hook(input.leaf);
      }
    }
  }

  static void accumulate(TensorState& leaf, Tensor gradient) {
    gradient = converted(gradient, Layout::plain, leaf.dtype);
    if (!leaf.grad.defined()) {
      leaf.grad = gradient.is_sole_owner() ? std::move(gradient) : gradient.clone();
    } else if (leaf.grad_valid) {
      add_in_place(leaf.grad, gradient);
    } else {
      leaf.grad.copy_from(gradient);
    }
    leaf.grad_valid = true;
  }

  static void fire_hook(const std::shared_ptr<TensorState>& leaf) {
    if (leaf->grad_hook) leaf->grad_hook(Tensor(leaf));
  }

  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, Earlier> queue_;
  std::unordered_map<TensorState*, std::size_t> remaining_uses_;
  std::vector<std::shared_ptr<TensorState>> leaves_;  // in order of discovery
};

bool BackwardCall::needs(std::size_t i) const {
  return node_.inputs[i].node != nullptr || node_.inputs[i].leaf != nullptr;
}

void BackwardCall::give(std::size_t i, Tensor gradient) {
  if (!needs(i)) return;
  if (!(gradient.shape() == node_.inputs[i].shape)) {
    throw ShapeError(fmt::format("{}: the gradient of input {} has shape {}, the input {}",
                                 node_.op, i, to_string(gradient.shape()),
                                 to_string(node_.inputs[i].shape)));
  }
  given_[i] = std::move(gradient);
}

GradientTarget BackwardCall::target(std::size_t i) {
  const Node::Input& input = node_.inputs[i];
  if (!input.leaf) {
    given_[i] = Tensor::empty(input.shape, input.dtype, node_.context);
    return {given_[i]->view(), false};
  }
  TensorState& leaf = *input.leaf;
  if (!leaf.grad.defined()) leaf.grad = Tensor::empty(leaf.shape, leaf.dtype, leaf.context);
  const bool written = std::ranges::find(written_, &leaf) != written_.end();
  written_.push_back(&leaf);
  return {leaf.grad.view(), leaf.grad_valid || written};
}

}  // namespace collar::autograd

namespace collar {

void Tensor::backward() const {
  if (!defined() || !requires_grad()) {
    throw AutogradError(
        fmt::format("backward: {} does not require a gradient: it is a constant, was made under "
                    "NoGrad, or is itself a gradient "
                    "(second derivatives are not offered)",
                    describe(*this)));
  }
  if (numel() != 1) {
    throw AutogradError(
        fmt::format("backward: starts from one number, not from {}", describe(*this)));
  }
  if (is_leaf()) {
    throw AutogradError("backward: this tensor is a leaf; no operation has been recorded");
  }
  autograd::BackwardRun(*this).run();
}

}  // namespace collar
