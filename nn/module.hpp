// SPDX-License-Identifier: Apache-2.0
// Module: a layer, or layers put together. A module owns its parameters, buffers and child modules,
// in the order in which they were added, and names them by the path through the tree: the names and
// the order of PyTorch's state_dict, so that files can be exchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/parameter.hpp"

namespace collar::nn {

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the module computes. Callers write module(x), which also sees to the hook and the type.
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x);

  /// Called with what goes into and comes out of this module, after every call. An empty function
  /// removes it.
  using ForwardHook = std::function<void(const Tensor& input, const Tensor& output)>;
  void set_forward_hook(ForwardHook hook) { forward_hook_ = std::move(hook); }

  /// Handles of all parameters, each module's own before those of its children.
  Parameters named_parameters() const;
  /// The parameters that get a gradient.
  Parameters trainable_parameters() const;
  /// The tensors that are part of the state but not trained: running statistics and their counters.
  Parameters named_buffers() const;
  /// Both, module by module: names and order of PyTorch's state_dict().
  Parameters state_dict() const;
  /// Elements of all parameters.
  std::int64_t parameter_count() const;

  /// Training behaviour (batch normalisation with the batch's statistics) for this module and all
  /// below.
  void train(bool training = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  /// No parameter below gets a gradient any more.
  void freeze() { set_trainable(false); }
  void unfreeze() { set_trainable(true); }
  /// Freezes all but `part`. Throws UsageError if that is no module of this tree.
  void freeze_all_but(const Module& part);

  /// Takes all parameters and floating-point buffers to a device. Handles held elsewhere follow;
  /// counters stay on the host, where they are counted.
  void to(DeviceContext& context);

  /// The type of the activations of a whole model: f32, or bf16 for mixed precision. A call then
  /// converts its input to bf16 and its output back to f32; every operation between computes in the
  /// type it is given. Parameters and statistics stay f32.
  void set_compute_type(DType type) { compute_type_ = type; }
  DType compute_type() const { return compute_type_; }

  /// Draws new initial values for all parameters, as timm does. Each parameter has a random stream
  /// of its own, keyed by the seed and its name, so its values depend on nothing else. `path` is
  /// this module's name in a larger model.
  void initialize(std::uint64_t seed, const std::string& path = "");

  /// Calls `visit` for this module and all below, children before their parents, with their paths.
  void for_each_module(const std::function<void(Module&, const std::string& path)>& visit,
                       const std::string& path = "");

 protected:
  Module() = default;

  /// A trainable f32 parameter of zeros on the host.
  Tensor add_parameter(std::string name, const Shape& shape);
  Tensor add_buffer(std::string name, Tensor tensor);
  /// Constructs a child and returns it; this module owns it.
  template <typename Child, typename... Args>
  Child& add(std::string name, Args&&... args) {
    auto child = std::make_unique<Child>(std::forward<Args>(args)...);
    Child& reference = *child;
    children_.push_back({std::move(name), std::move(child)});
    return reference;
  }

  struct Child {
    std::string name;
    std::unique_ptr<Module> module;
  };
  const std::vector<Child>& children() const { return children_; }

  /// Gives this module's own parameters their initial values; the children have theirs.
  virtual void reset_parameters(std::uint64_t seed, const std::string& path);

 private:
  void collect(Parameters& all, const std::string& prefix, bool parameters, bool buffers) const;
  void set_trainable(bool trainable);
  bool contains(const Module& part) const;

  Parameters parameters_;
  Parameters buffers_;
  std::vector<Child> children_;
  bool training_ = true;
  DType compute_type_ = DType::f32;
  ForwardHook forward_hook_;
};

}  // namespace collar::nn
