// SPDX-License-Identifier: Apache-2.0
#include "comm/gradient_buckets.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "kernels/core/error.hpp"
#include "kernels/pointwise.hpp"

namespace collar::comm {
namespace {

BucketPlan plan_for(std::span<const NamedTensor> parameters, const Communicator& communicator,
                    const GradientBucketOptions& options) {
  std::vector<ParameterSize> sizes;
  for (const NamedTensor& parameter : parameters)
    sizes.push_back({parameter.name, parameter.tensor.numel()});
  return plan_buckets(sizes,
                      {options.first_bucket_bytes, options.bucket_bytes, communicator.size()});
}

/// In the order of the arena, in which the first difference is the one that moves what follows it.
std::vector<Claim> claims_of(const BucketPlan& plan, std::span<const NamedTensor> parameters,
                             const GradientBucketOptions& options) {
  std::vector<Claim> claims{
      {"the number of virtual ranks", fmt::format("{}", options.virtual_ranks)},
      {"the limit of the first bucket", fmt::format("{} bytes", options.first_bucket_bytes)},
      {"the limit of a bucket", fmt::format("{} bytes", options.bucket_bytes)}};
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Tensor& tensor = parameters[i].tensor;
    claims.push_back(
        {parameters[i].name, fmt::format("{} {} at element {}", name_of(tensor.dtype()),
                                         to_string(tensor.shape()), plan.offsets[i])});
  }
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    claims.push_back(
        {fmt::format("bucket {}", b),
         fmt::format("elements {} to {}", plan.buckets[b].begin, plan.buckets[b].end)});
  }
  return claims;
}

void add_in_place(Tensor sum, const Tensor& term) {
  std::visit([&](auto& device) { kernels::add_in_place(device, sum.view(), term.view()); },
             *sum.context());
}

void zero_gradient(Tensor& parameter) {
  Tensor gradient = parameter.grad_storage();
  std::visit([&](auto& device) { kernels::fill(device, gradient.view(), 0); }, *gradient.context());
  parameter.set_grad_valid(true);
}

}  // namespace

GradientBuckets::GradientBuckets(BucketPlan plan, Communicator& communicator, int virtual_ranks)
    : communicator_(communicator), virtual_ranks_(virtual_ranks), plan_(std::move(plan)) {}

GradientBuckets::GradientBuckets(std::span<const NamedTensor> parameters,
                                 Communicator& communicator, const GradientBucketOptions& options)
    : GradientBuckets(plan_for(parameters, communicator, options), communicator,
                      options.virtual_ranks) {
  require_agreement(communicator, "gradient buckets", claims_of(plan_, parameters, options));
  if (parameters.empty()) throw UsageError("gradient buckets: no parameter requires a gradient");
  if (virtual_ranks_ < 1) {
    throw UsageError(
        fmt::format("gradient buckets: {} virtual ranks, expected at least 1", virtual_ranks_));
  }

  DeviceContext* context = parameters.front().tensor.context();
  const auto bytes = static_cast<std::size_t>(plan_.elements) * sizeof(float);
  const std::shared_ptr<std::byte> memory = communicator.allocate(bytes);
  arena_ = Tensor::adopt(memory.get(), {plan_.elements}, DType::f32, memory, context);
  const int levels = std::bit_width(static_cast<unsigned>(virtual_ranks_ - 1));
  for (int level = 0; level < levels; ++level) {
    partial_sums_.push_back(Tensor::zeros({plan_.elements}, DType::f32, context));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor& parameter = parameters_.emplace_back(parameters[i].tensor);
    const std::int64_t begin = plan_.offsets[i];
    parameter.set_grad_storage(
        arena_.slice(begin, begin + parameter.numel()).viewed_as(parameter.shape()));
    parameter.set_grad_hook([this, i](const Tensor&) { parameter_ready(i); });
  }
  missing_.resize(plan_.buckets.size());
}

GradientBuckets::~GradientBuckets() {
  for (Tensor& parameter : parameters_) parameter.set_grad_hook(nullptr);
  for (const Work& reduction : reductions_) {
    try {
      reduction.wait();
    } catch (const std::exception&) {  // the caller has seen it, or does not care any more
    }
  }
}

void GradientBuckets::begin(Pass pass) {
  pass_ = pass;
  if (pass != Pass::end_of_step) return;
  reductions_.clear();
  launched_early_ = 0;
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    missing_[b] = plan_.buckets[b].parameters.size();
}

void GradientBuckets::parameter_ready(std::size_t parameter) {
  if (pass_ != Pass::end_of_step) return;
  if (!parameters_[parameter].grad().defined()) zero_gradient(parameters_[parameter]);
  --missing_[plan_.bucket_of(parameter)];
  launch_ready_buckets();
  launched_early_ = reductions_.size();
}

// Only the next bucket in order may be launched, so that all ranks reduce in one order.
void GradientBuckets::launch_ready_buckets() {
  while (reductions_.size() < plan_.buckets.size() && missing_[reductions_.size()] == 0) {
    const Bucket& bucket = plan_.buckets[reductions_.size()];
    add_partial_sums(bucket);
    reductions_.push_back(communicator_.all_reduce_async(part(arena_, bucket).view(),
                                                         {ReduceOp::sum, 1.0 / logical_ranks()}));
  }
}

void GradientBuckets::end() {
  if (pass_ == Pass::accumulate) return;
  zero_missing();
  if (pass_ == Pass::end_of_rank) {
    add_to_tree();
    for (Tensor& parameter : parameters_) parameter.set_grad_valid(false);
    ++completed_;
    return;
  }
  for (std::size_t& count : missing_) count = 0;
  launch_ready_buckets();
  pass_ = Pass::accumulate;
}

// A gradient that nobody wrote is zero, not what an earlier step left there. Buckets already
// launched lack none.
void GradientBuckets::zero_missing() {
  for (Tensor& parameter : parameters_) {
    if (!parameter.grad().defined()) zero_gradient(parameter);
  }
}

// Adds one to the binary counter: sums of 1, 2, 4 … ranks are merged as soon as there are two of a
// size.
void GradientBuckets::add_to_tree() {
  std::size_t level = 0;
  if ((completed_ & 1) == 0) {
    partial_sums_[0].copy_from(arena_);
    return;
  }
  add_in_place(partial_sums_[0], arena_);
  for (level = 1; (completed_ >> level) & 1; ++level)
    add_in_place(partial_sums_[level], partial_sums_[level - 1]);
  std::swap(partial_sums_[level], partial_sums_[level - 1]);
}

void GradientBuckets::add_partial_sums(const Bucket& bucket) {
  for (std::size_t level = 0; level < partial_sums_.size(); ++level) {
    if ((completed_ >> level) & 1)
      add_in_place(part(arena_, bucket), part(partial_sums_[level], bucket));
  }
}

void GradientBuckets::wait(std::size_t bucket) {
  reductions_.at(bucket).wait();
}

void GradientBuckets::finish() {
  for (std::size_t bucket = 0; bucket < reductions_.size(); ++bucket) wait(bucket);
}

void GradientBuckets::reset() {
  for (Tensor& parameter : parameters_) parameter.set_grad_valid(false);
  completed_ = 0;
}

}  // namespace collar::comm
