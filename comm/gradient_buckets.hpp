// SPDX-License-Identifier: Apache-2.0
// Gradient buckets: how the gradients of a step become the mean over all logical ranks while the
// backward pass still runs. Gradients are born in one flat arena (bucket_plan.hpp); when the last
// one of a bucket is in, the bucket is reduced asynchronously, strictly in the plan's order. This
// is the one place where comm/ knows the engine's gradient hooks.
//
// A job of n processes that play V ranks each has L = n V logical ranks; process p plays pV … pV +
// V - 1, one after the other. Their gradients are added in one tree over the logical ranks (split
// at the largest power of two below L, recursively): within a process as a binary counter of
// partial sums, between processes by the direct algorithm, which adds in the same tree. So for V a
// power of two, or n = 1, the result does not depend on how L is split, to the last bit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "engine/tensor.hpp"

namespace collar::comm {

struct GradientBucketOptions {
  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  std::size_t bucket_bytes = std::size_t{25} << 20;
  int virtual_ranks = 1;  ///< V
};

class GradientBuckets {
 public:
  /// Gives every parameter (f32, plain, bound to one context, requiring a gradient; in registration
  /// order) a place for its gradient and a hook. Called by all ranks, which must have the same
  /// parameters and options: RankLostError names the first difference. The communicator and the
  /// context outlive this object.
  GradientBuckets(std::span<const NamedTensor> parameters, Communicator& communicator,
                  const GradientBucketOptions& options = {});
  /// Takes the hooks off. Waits for reductions under way.
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  const BucketPlan& plan() const { return plan_; }
  int logical_ranks() const { return communicator_.size() * virtual_ranks_; }
  /// All gradients: f32 [plan().elements].
  const Tensor& arena() const { return arena_; }

  /// What the coming backward pass is to its step.
  enum class Pass {
    accumulate,   ///< gradients only add up (DDP's no_sync)
    end_of_rank,  ///< the last micro-batch of a virtual rank that is not the last one
    end_of_step   ///< the last micro-batch of the last virtual rank: buckets are reduced as they
                  ///< fill
  };
  void begin(Pass pass);
  /// To be called after the backward pass. Parameters that got no gradient count as zeros.
  void end();

  /// Returns when a bucket's gradients are the mean: the sum times 1 / L. Throws what the reduction
  /// threw.
  void wait(std::size_t bucket);
  /// Waits for all buckets.
  void finish();
  /// Declares all gradients invalid and the step over: the next backward pass writes afresh.
  void reset();

  /// Reductions launched before the backward pass of the last step had ended: what overlapped with
  /// it.
  std::size_t launched_early() const { return launched_early_; }

 private:
  /// Without parameters. The public constructor delegates to it, so that, should it throw half-way,
  /// the destructor takes the hooks off again.
  GradientBuckets(BucketPlan plan, Communicator& communicator, int virtual_ranks);

  void parameter_ready(std::size_t parameter);
  void launch_ready_buckets();
  void add_to_tree();
  void add_partial_sums(const Bucket& bucket);
  void zero_missing();
  Tensor part(const Tensor& arena, const Bucket& bucket) const {
    return arena.slice(bucket.begin, bucket.end);
  }

  std::vector<Tensor> parameters_;
  Communicator& communicator_;
  int virtual_ranks_;
  BucketPlan plan_;
  Tensor arena_;
  std::vector<Tensor>
      partial_sums_;             // of 2^i virtual ranks, valid where bit i of completed_ is set
  std::uint64_t completed_ = 0;  // virtual ranks of this step that are done
  Pass pass_ = Pass::accumulate;
  std::vector<std::size_t> missing_;  // by bucket: parameters whose gradient is not in yet
  std::vector<Work> reductions_;      // by bucket, launched so far
  std::size_t launched_early_ = 0;
};

}  // namespace collar::comm
