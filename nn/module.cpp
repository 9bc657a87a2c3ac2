// SPDX-License-Identifier: Apache-2.0
#include "nn/module.hpp"

#include <algorithm>

#include "engine/ops/layout.hpp"
#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace

Tensor Module::operator()(const Tensor& x) {
  // A module whose type is f32 takes what it is given: it may be a layer of a model in bf16.
  Tensor y =
      compute_type_ == DType::f32 ? forward(x) : cast(forward(cast(x, compute_type_)), DType::f32);
  if (forward_hook_) forward_hook_(x, y);
  return y;
}

void Module::collect(Parameters& all, const std::string& path, bool parameters,
                     bool buffers) const {
  if (parameters) {
    for (const Parameter& own : parameters_) all.push_back({joined(path, own.name), own.tensor});
  }
  if (buffers) {
    for (const Parameter& own : buffers_) all.push_back({joined(path, own.name), own.tensor});
  }
  for (const Child& child : children_) {
    child.module->collect(all, joined(path, child.name), parameters, buffers);
  }
}

Parameters Module::named_parameters() const {
  Parameters all;
  collect(all, "", true, false);
  return all;
}

Parameters Module::trainable_parameters() const {
  Parameters all = named_parameters();
  std::erase_if(all, [](const Parameter& parameter) { return !parameter.tensor.requires_grad(); });
  return all;
}

Parameters Module::named_buffers() const {
  Parameters all;
  collect(all, "", false, true);
  return all;
}

Parameters Module::state_dict() const {
  Parameters all;
  collect(all, "", true, true);
  return all;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : named_parameters()) count += parameter.tensor.numel();
  return count;
}

void Module::train(bool training) {
  training_ = training;
  for (const Child& child : children_) child.module->train(training);
}

void Module::set_trainable(bool trainable) {
  for (Parameter& parameter : parameters_) parameter.tensor.set_requires_grad(trainable);
  for (const Child& child : children_) child.module->set_trainable(trainable);
}

bool Module::contains(const Module& part) const {
  return this == &part || std::any_of(children_.begin(), children_.end(), [&](const Child& child) {
           return child.module->contains(part);
         });
}

void Module::freeze_all_but(const Module& part) {
  if (!contains(part)) throw UsageError("freeze_all_but: the module is not a part of this model");
  const Parameters kept = part.named_parameters();
  freeze();
  for (Parameter parameter : kept) parameter.tensor.set_requires_grad(true);
}

void Module::to(DeviceContext& context) {
  for (Parameter& parameter : parameters_) parameter.tensor.move_to(context);
  for (Parameter& buffer : buffers_) {
    if (is_floating(buffer.tensor.dtype())) buffer.tensor.move_to(context);
  }
  for (const Child& child : children_) child.module->to(context);
}

void Module::for_each_module(const std::function<void(Module&, const std::string&)>& visit,
                             const std::string& path) {
  for (const Child& child : children_) {
    child.module->for_each_module(visit, joined(path, child.name));
  }
  visit(*this, path);
}

void Module::initialize(std::uint64_t seed, const std::string& path) {
  for_each_module(
      [seed](Module& module, const std::string& place) { module.reset_parameters(seed, place); },
      path);
}

void Module::reset_parameters(std::uint64_t /*seed*/, const std::string& /*path*/) {}

Tensor Module::add_parameter(std::string name, const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  tensor.set_requires_grad(true);
  parameters_.push_back({std::move(name), tensor});
  return tensor;
}

Tensor Module::add_buffer(std::string name, Tensor tensor) {
  buffers_.push_back({std::move(name), tensor});
  return tensor;
}

}  // namespace collar::nn
