// SPDX-License-Identifier: Apache-2.0
// GradientBuckets: the gradients of a model in one flat arena, summed over all logical ranks bucket
// by bucket while the backward pass runs. Afterwards they hold the mean: the sum times 1/L, in the
// tree order over L = size × virtual_ranks logical ranks.
//
// A step is, for each virtual rank in turn, one or more backward passes (micro-batches, which add
// up). Only the last pass of the last virtual rank communicates. The sums of the virtual ranks
// before it are kept as a binary counter keeps its digits, which is what makes n processes of V
// virtual ranks equal to one process of nV, bit for bit, if V is a power of two or n is 1.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "engine/named_tensor.hpp"

namespace collar::comm {

struct BucketOptions {
  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  std::size_t bucket_bytes = std::size_t{25} << 20;
  int virtual_ranks = 1;  ///< logical ranks that each process plays
};

class GradientBuckets {
 public:
  /// Takes over the gradients of these parameters (f32 leaves on a context, in registration order):
  /// their storage moves into the arena and their hooks are set. Called by all ranks, which must
  /// have the same parameters. Throws RankLostError naming the first parameter that differs,
  /// UsageError for a parameter of another type. The communicator outlives this object.
  GradientBuckets(std::span<const NamedTensor> parameters, Communicator& communicator,
                  const BucketOptions& options = {});
  /// Waits for what is under way and removes the hooks. The arena lives on in the gradients.
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Runs loss.backward() as the next micro-batch. With `last_micro_batch`, the virtual rank whose
  /// turn it is has done its share. True if that was the last of the step: the reductions of all
  /// buckets are then under way, in order, and wait_bucket() or finish() end the step. Gradients
  /// must have been cleared since the step before. Parameters that no loss of the step has touched
  /// contribute zeros.
  bool backward(const Tensor& loss, bool last_micro_batch = true);

  /// Returns when the gradients of bucket i hold the mean.
  void wait_bucket(std::size_t i);
  /// Returns when all gradients hold the mean.
  void finish();

  const BucketPlan& plan() const { return plan_; }
  /// All gradients, f32, flat: bucket i is elements [begin, end) of plan().buckets[i].
  const Tensor& arena() const { return arena_; }
  /// L: by how many the mean is divided.
  int logical_ranks() const { return communicator_.size() * virtual_ranks_; }
  /// The virtual rank whose micro-batches come next.
  int virtual_rank() const { return virtual_rank_; }

 private:
  /// Sums of an aligned group of virtual ranks, 2^level of them: one digit of the counter.
  using Digit = std::vector<float>;

  void check_cleared() const;
  void gradient_is_ready(std::size_t parameter);
  void launch_ready_buckets();
  void launch(std::size_t bucket);
  void fill_untouched_with_zeros(std::size_t bucket);
  void push_virtual_rank();
  /// gradients = digit + gradients over [begin, end) for these levels, lowest first.
  void add_digits(unsigned levels, std::int64_t begin, std::int64_t end);

  Communicator& communicator_;
  std::vector<NamedTensor> parameters_;
  int virtual_ranks_;
  BucketPlan plan_;
  std::shared_ptr<std::byte> memory_;
  float* gradients_;
  Tensor arena_;
  std::vector<Digit> digits_;           // by level
  std::vector<std::size_t> bucket_of_;  // by parameter
  int virtual_rank_ = 0;
  bool step_begun_ = false;
  bool reducing_ = false;             // this backward pass is the last of the step
  std::vector<std::size_t> pending_;  // by bucket: parameters that are not ready
  std::size_t next_bucket_ = 0;       // to be launched
  std::vector<Work> works_;           // by bucket
};

}  // namespace collar::comm
