// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/accelerator.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/ops/pointwise.hpp"
#include "kernels/core/error.hpp"
#include "nn/batch_norm.hpp"
#include "nn/optim/clip.hpp"

namespace collar {
namespace {

using Pass = comm::GradientBuckets::Pass;

// Ranks of one host share its CPUs evenly unless told otherwise.
CpuOptions cpu_options(const AcceleratorOptions& options, const comm::Environment& environment) {
  CpuOptions cpu;
  cpu.threads = options.threads > 0
                    ? options.threads
                    : std::max(1, available_cpus() / std::max(1, environment.local_world_size));
  cpu.direct_convolutions = options.direct_convolutions;
  return cpu;
}

void check(const AcceleratorOptions& options, DeviceContext& device) {
  if (options.gradient_accumulation_steps < 1 || options.virtual_ranks < 1) {
    throw UsageError(fmt::format(
        "gradient accumulation over {} steps and {} virtual ranks: both must be at least 1",
        options.gradient_accumulation_steps, options.virtual_ranks));
  }
  if (options.buffers == Buffers::mean && options.virtual_ranks > 1) {
    throw UsageError(
        fmt::format("buffers: the mean over ranks needs a set of running statistics for each rank, "
                    "but {} virtual ranks share one: use one virtual rank, or rank 0's buffers",
                    options.virtual_ranks));
  }
  const bool has_bf16 =
      std::visit([](const auto& context) { return context.has_fast_bf16(); }, device);
  if (options.precision == Precision::bf16 && !has_bf16) {
    throw DeviceError(
        "precision bf16: this CPU does not multiply bf16 in hardware (AVX512_BF16), so it would be "
        "slower than f32, not faster; use f32");
  }
}

}  // namespace

Accelerator::Accelerator(AcceleratorOptions options) : Accelerator(std::move(options), nullptr) {}

Accelerator::Accelerator(AcceleratorOptions options,
                         std::unique_ptr<comm::Communicator> communicator)
    : options_(std::move(options)),
      environment_(options_.environment      ? *options_.environment
                   : communicator == nullptr ? comm::Environment::from_process()
                                             : comm::Environment{}),
      runtime_(RuntimeOptions{{}, cpu_options(options_, environment_)}),
      communicator_(communicator != nullptr
                        ? std::move(communicator)
                        : comm::create_communicator(environment_, options_.communicator)) {
  check(options_, runtime_.context());
}

Accelerator::~Accelerator() = default;

void Accelerator::bind(nn::Module& model) {
  if (model_ != nullptr)
    throw UsageError("prepare: an accelerator trains one model, and it has one already");
  model_ = &model;
  model.to(device());
  model.set_compute_type(options_.precision == Precision::bf16 ? DType::bf16 : DType::f32);
  nn::Parameters state = model.state_dict();
  comm::broadcast_tensors(*communicator_, "parameters and buffers", state);

  // Trainable parameters move into an arena laid out like that of their gradients, so that an
  // optimizer updates long stretches at once. A frozen model under evaluation has none.
  trainable_ = model.trainable_parameters();
  if (trainable_.empty()) return;
  buckets_ = std::make_unique<comm::GradientBuckets>(
      trainable_, *communicator_,
      comm::GradientBucketOptions{options_.first_bucket_bytes, options_.bucket_bytes,
                                  options_.virtual_ranks});
  const comm::BucketPlan& plan = buckets_->plan();
  parameter_arena_ = Tensor::zeros({plan.elements}, DType::f32, &device());
  for (std::size_t i = 0; i < trainable_.size(); ++i) {
    Tensor& parameter = trainable_[i].tensor;
    parameter.rehome(parameter_arena_.slice(plan.offsets[i], plan.offsets[i] + parameter.numel())
                         .viewed_as(parameter.shape()));
  }
}

void Accelerator::bind(nn::Optimizer& optimizer) {
  optimizers_.push_back(&optimizer);
  optimizer.set_driver(
      {[this](nn::Optimizer& which) { step(which); }, [this](nn::Optimizer&) { zero_grad(); }});
}

void Accelerator::bind(data::DataLoader& loader) {
  std::vector<int> own;
  for (int k = 0; k < options_.virtual_ranks; ++k)
    own.push_back(process_index() * options_.virtual_ranks + k);
  loader.shard(logical_ranks(), std::move(own), options_.gradient_accumulation_steps);
  loader.set_on_batch([this](data::Batch& batch) { take_turn(batch); });
}

void Accelerator::bind(nn::Schedule& schedule) {
  schedule.set_driver([this](nn::Schedule& which) { advance(which); });
}

void Accelerator::tie_together() {
  if (buckets_ == nullptr) return;
  for (nn::Optimizer* optimizer : optimizers_) optimizer->bind_arena(buckets_->arena());
}

void Accelerator::take_turn(data::Batch& batch) {
  batch.images = batch.images.to(device());
  batch.labels = batch.labels.to(device());
  const int steps = options_.gradient_accumulation_steps;
  const bool last_micro_batch = batch.last || batch.index % steps == steps - 1;
  const bool last_rank = batch.rank == (process_index() + 1) * options_.virtual_ranks - 1;
  pass_ = !last_micro_batch ? Pass::accumulate : last_rank ? Pass::end_of_step : Pass::end_of_rank;
  if (model_ != nullptr)
    nn::set_track_statistics(*model_, options_.buffers == Buffers::mean || batch.rank == 0);
}

void Accelerator::backward(const Tensor& loss) {
  if (buckets_ == nullptr) {
    throw UsageError("backward: prepare() a model with trainable parameters first");
  }
  held_ = Held::part_of_a_step;
  buckets_->begin(pass_);
  const int steps = options_.gradient_accumulation_steps;
  (steps == 1 ? loss : mul(loss, 1.0 / steps)).backward();
  buckets_->end();
  if (sync_gradients()) held_ = Held::whole_step;
}

std::optional<double> Accelerator::clip_grad_norm(double max_norm) {
  if (!sync_gradients() || buckets_ == nullptr) return std::nullopt;
  buckets_->finish();
  return nn::clip_grad_norm(trainable_, max_norm);
}

std::optional<double> Accelerator::grad_norm() {
  if (!sync_gradients() || buckets_ == nullptr) return std::nullopt;
  buckets_->finish();
  return nn::gradient_norm(trainable_);
}

// Updates each bucket as soon as its gradients are there; those of the last layers while the first
// ones still travel.
void Accelerator::step(nn::Optimizer& optimizer) {
  if (!sync_gradients()) return;
  if (held_ != Held::whole_step)
    throw UsageError("optimizer.step(): call accelerator.backward(loss) first");
  optimizer.begin_update();
  const auto& plan = buckets_->plan().buckets;
  for (std::size_t bucket = 0; bucket < plan.size(); ++bucket) {
    buckets_->wait(bucket);
    optimizer.update_range(plan[bucket].begin, plan[bucket].end);
  }
}

void Accelerator::zero_grad() {
  if (!sync_gradients()) return;
  if (held_ == Held::part_of_a_step) {
    throw UsageError(
        "zero_grad() in the middle of a step would lose gradients that were accumulated: call it "
        "after optimizer.step()");
  }
  if (held_ == Held::nothing) return;
  buckets_->finish();
  buckets_->reset();
  held_ = Held::nothing;
}

void Accelerator::advance(nn::Schedule& schedule) const {
  if (sync_gradients()) schedule.advance_by(logical_ranks());
}

Tensor Accelerator::gather(const Tensor& tensor) {
  std::vector<std::int64_t> extents(tensor.shape().extents().begin(),
                                    tensor.shape().extents().end());
  if (extents.empty()) extents.push_back(1);
  extents[0] *= num_processes();
  Tensor all = Tensor::empty(Shape(extents), tensor.dtype(), tensor.context());
  communicator_->all_gather(comm::ConstElements(tensor.view()), comm::Elements(all.view()));
  return all;
}

Tensor Accelerator::reduce(const Tensor& tensor, Reduction reduction) {
  Tensor result = tensor.clone();
  const double scale = reduction == Reduction::mean ? 1.0 / num_processes() : 1.0;
  communicator_->all_reduce(comm::Elements(result.view()), {comm::ReduceOp::sum, scale});
  return result;
}

double Accelerator::reduce(double value, Reduction reduction) {
  std::array<double, 1> values{value};
  const double scale = reduction == Reduction::mean ? 1.0 / num_processes() : 1.0;
  communicator_->all_reduce(std::span(values), {comm::ReduceOp::sum, scale});
  return values[0];
}

bool Accelerator::any_process(bool value) {
  std::array<std::int32_t, 1> flags{value ? 1 : 0};
  communicator_->all_reduce(std::span(flags), {comm::ReduceOp::max, 1});
  return flags[0] != 0;
}

void Accelerator::synchronize_buffers() {
  if (model_ == nullptr || num_processes() == 1) return;
  for (nn::Parameter& buffer : model_->named_buffers()) {
    if (options_.buffers == Buffers::mean && is_floating(buffer.tensor.dtype()))
      communicator_->all_reduce(buffer.tensor.view(), {comm::ReduceOp::sum, 1.0 / num_processes()});
    else
      communicator_->broadcast(buffer.tensor.view(), 0);
    buffer.tensor.changed_in_place();
  }
}

}  // namespace collar
