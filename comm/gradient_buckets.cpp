// SPDX-License-Identifier: Apache-2.0
#include "comm/gradient_buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "comm/collectives/reduce.hpp"
#include "comm/verify.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

BucketPlan make_plan(std::span<const NamedTensor> parameters, const BucketOptions& options,
                     int ranks) {
  std::vector<ParameterSize> sizes;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.dtype() != DType::f32)
      throw UsageError(fmt::format("gradient buckets: {} is {}: gradients are f32", name,
                                   collar::name_of(tensor.dtype())));
    sizes.push_back({name, tensor.numel()});
  }
  return plan_buckets(sizes, {options.first_bucket_bytes, options.bucket_bytes, ranks});
}

}  // namespace

GradientBuckets::GradientBuckets(std::span<const NamedTensor> parameters,
                                 Communicator& communicator, const BucketOptions& options)
    : communicator_(communicator),
      parameters_(parameters.begin(), parameters.end()),
      virtual_ranks_(options.virtual_ranks),
      plan_(make_plan(parameters, options, communicator.size())) {
  if (virtual_ranks_ < 1)
    throw UsageError(fmt::format("gradient buckets: {} virtual ranks", virtual_ranks_));
  std::vector<Claim> claims = claims_of(parameters_, false);
  claims.push_back({"the plan of gradient buckets", fingerprint(plan_)});
  claims.push_back({"the number of virtual ranks", std::to_string(virtual_ranks_)});
  verify_equal(communicator_, "trainable parameters", claims);

  memory_ = communicator_.allocate(static_cast<std::size_t>(plan_.elements) * sizeof(float));
  gradients_ = reinterpret_cast<float*>(memory_.get());
  DeviceContext* const context =
      parameters_.empty() ? nullptr : parameters_.front().tensor.context();
  arena_ = Tensor::adopt(gradients_, {plan_.elements}, DType::f32, memory_, context);
  works_.resize(plan_.buckets.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& tensor = parameters_[i].tensor;
    tensor.set_grad_storage(Tensor::adopt(gradients_ + plan_.offsets[i], tensor.shape(), DType::f32,
                                          memory_, tensor.context()));
    tensor.set_grad_hook([this, i](const Tensor&) { gradient_is_ready(i); });
    bucket_of_.push_back(plan_.bucket_of(i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (NamedTensor& parameter : parameters_) parameter.tensor.set_grad_hook({});
  for (const Work& work : works_) {
    try {
      work.wait();
    } catch (const std::exception&) {  // whoever uses the communicator next will hear of it
    }
  }
}

bool GradientBuckets::backward(const Tensor& loss, bool last_micro_batch) {
  finish();
  if (!step_begun_) check_cleared();
  step_begun_ = true;
  reducing_ = last_micro_batch && virtual_rank_ == virtual_ranks_ - 1;
  if (reducing_) {
    next_bucket_ = 0;
    pending_.clear();
    for (const Bucket& bucket : plan_.buckets) pending_.push_back(bucket.parameters.size());
  }
  try {
    loss.backward();
  } catch (...) {
    reducing_ = false;
    throw;
  }
  if (!last_micro_batch) return false;
  if (!reducing_) {
    push_virtual_rank();
    ++virtual_rank_;
    return false;
  }
  while (next_bucket_ < plan_.buckets.size()) launch(next_bucket_);
  reducing_ = false;
  step_begun_ = false;
  virtual_rank_ = 0;
  return true;
}

void GradientBuckets::check_cleared() const {
  if (virtual_ranks_ == 1) return;  // what is left over is added to, as everywhere
  for (const auto& [name, tensor] : parameters_)
    if (tensor.grad().defined())
      throw UsageError(
          fmt::format("the gradient of {} was not cleared after the last step: with {} "
                      "virtual ranks it would be lost",
                      name, virtual_ranks_));
}

void GradientBuckets::gradient_is_ready(std::size_t parameter) {
  if (!reducing_) return;
  --pending_[bucket_of_[parameter]];
  launch_ready_buckets();
}

void GradientBuckets::launch_ready_buckets() {
  while (next_bucket_ < plan_.buckets.size() && pending_[next_bucket_] == 0) launch(next_bucket_);
}

void GradientBuckets::launch(std::size_t bucket) {
  const auto& [begin, end, members] = plan_.buckets[bucket];
  fill_untouched_with_zeros(bucket);
  add_digits(static_cast<unsigned>(virtual_rank_), begin, end);
  const std::span<float> values(gradients_ + begin, static_cast<std::size_t>(end - begin));
  works_[bucket] = communicator_.all_reduce_async(values, {ReduceOp::sum, 1.0 / logical_ranks()});
  next_bucket_ = bucket + 1;
}

void GradientBuckets::fill_untouched_with_zeros(std::size_t bucket) {
  for (const std::size_t i : plan_.buckets[bucket].parameters) {
    Tensor& tensor = parameters_[i].tensor;
    if (tensor.grad().defined()) continue;
    std::fill_n(gradients_ + plan_.offsets[i], tensor.numel(), 0.0f);
    tensor.set_grad_valid(true);
  }
}

void GradientBuckets::add_digits(unsigned levels, std::int64_t begin, std::int64_t end) {
  for (std::size_t level = 0; levels >> level != 0; ++level)
    if ((levels >> level & 1u) != 0)
      combine({}, gradients_ + begin, digits_[level].data() + begin,
              static_cast<std::size_t>(end - begin));
}

void GradientBuckets::push_virtual_rank() {
  for (std::size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket)
    fill_untouched_with_zeros(bucket);
  // Adding one to the counter: the digits that are full carry into the first that is empty.
  const auto count = static_cast<unsigned>(virtual_rank_);
  const auto level = static_cast<std::size_t>(std::countr_one(count));
  add_digits((1u << level) - 1, 0, plan_.elements);
  if (digits_.size() <= level) digits_.resize(level + 1);
  digits_[level].assign(gradients_, gradients_ + plan_.elements);
  for (NamedTensor& parameter : parameters_) parameter.tensor.set_grad_valid(false);
}

void GradientBuckets::wait_bucket(std::size_t i) {
  works_[i].wait();
}

void GradientBuckets::finish() {
  for (Work& work : works_) {
    work.wait();
    work = Work();
  }
}

}  // namespace collar::comm
