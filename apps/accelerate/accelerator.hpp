// SPDX-License-Identifier: Apache-2.0
// Accelerator: what turns an ordinary training loop into one that runs on any number of ranks. It
// owns the runtime and the group of ranks; prepare() binds a model, its optimizer, its loaders and
// its schedule to them, and from then on the loop is the one for a single process:
//
//   for (const data::Batch& batch : loader) {
//     Tensor loss = cross_entropy(model(batch.images), batch.labels);
//     accelerator.backward(loss);   // gradients are all-reduced bucket by bucket while this runs
//     optimizer.step();
//     schedule.step();
//     optimizer.zero_grad();
//   }
//
// Names and meaning are those of Hugging Face accelerate. A process may play several logical ranks
// in turn; step(), zero_grad() and schedule.step() do nothing until the last of them has done its
// last micro-batch of the step.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/create_communicator.hpp"
#include "comm/gradient_buckets.hpp"
#include "data/loader/data_loader.hpp"
#include "kernels/runtime/runtime.hpp"
#include "nn/module.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/schedule/schedule.hpp"

namespace collar {

/// What activations are computed in. bf16 needs a CPU that multiplies it in hardware.
enum class Precision : std::uint8_t { f32, bf16 };

/// Whose running statistics the ranks share: logical rank 0's, which alone moves them (as DDP), or
/// the mean of all ranks', each of which moves its own (timm's dist_bn=reduce).
enum class Buffers : std::uint8_t { rank_0, mean };

struct AcceleratorOptions {
  Precision precision = Precision::f32;
  int gradient_accumulation_steps = 1;
  int virtual_ranks = 1;              ///< logical ranks this process plays in turn
  int threads = 0;                    ///< of the kernels; 0: this rank's share of the CPUs
  bool direct_convolutions = false;   ///< no Winograd: see CpuOptions
  Buffers buffers = Buffers::rank_0;  ///< mean: not with virtual ranks, which share one set
  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  std::size_t bucket_bytes = std::size_t{25} << 20;
  /// Which rank of which job this is; left out, what the launcher's variables say.
  std::optional<comm::Environment> environment{};
  comm::CommunicatorOptions communicator = comm::CommunicatorOptions::from_process();
};

class Accelerator {
 public:
  /// Joins the job. Throws UsageError, RankLostError as comm::create_communicator, and DeviceError
  /// for bf16 on a CPU without it.
  explicit Accelerator(AcceleratorOptions options = {});
  /// With a group that exists already (ranks that are threads).
  Accelerator(AcceleratorOptions options, std::unique_ptr<comm::Communicator> communicator);
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  int process_index() const { return communicator_->rank(); }
  int num_processes() const { return communicator_->size(); }
  int local_process_index() const { return environment_.local_rank; }
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }
  /// Ranks as sharding, averaging and schedules count them: processes times virtual ranks.
  int logical_ranks() const { return num_processes() * options_.virtual_ranks; }

  DeviceContext& device() { return runtime_.context(); }
  comm::Communicator& communicator() { return *communicator_; }
  const AcceleratorOptions& options() const { return options_; }

  /// Binds any of: a model (moved to the device; all ranks get rank 0's values), optimizers of its
  /// parameters, loaders (sharded over the logical ranks), schedules (advanced once for each
  /// logical rank, as accelerate does). All ranks call it with the same arguments. The objects
  /// outlive the accelerator or are not used after it.
  template <typename... Objects>
  void prepare(Objects&... objects) {
    (bind(objects), ...);
    tie_together();
  }

  /// Runs the loss backwards, divided by the accumulation steps. At the last micro-batch of a step
  /// the gradients become the mean over the logical ranks.
  void backward(const Tensor& loss);
  /// Whether this micro-batch ends a step: then optimizer.step() steps.
  bool sync_gradients() const { return pass_ == comm::GradientBuckets::Pass::end_of_step; }
  /// At the end of a step: waits for the gradients, clips them by their norm (torch's
  /// clip_grad_norm_) and returns the norm before. Nothing otherwise.
  std::optional<double> clip_grad_norm(double max_norm);
  /// The same without clipping.
  std::optional<double> grad_norm();

  // These speak of processes: a call is one exchange between them. With V virtual ranks a process
  // makes V such calls a step, one in each rank's turn; the k-th puts together the logical ranks k,
  // V + k, 2V + k, …, because the others have not had their turn yet.

  /// All processes' tensors of one shape, one after the other along dimension 0.
  Tensor gather(const Tensor& tensor);
  enum class Reduction : std::uint8_t { sum, mean };
  /// The sum or mean over the processes, elementwise.
  Tensor reduce(const Tensor& tensor, Reduction reduction = Reduction::sum);
  double reduce(double value, Reduction reduction = Reduction::sum);
  /// True on all processes if it is on any.
  bool any_process(bool value);
  void wait_for_everyone() { communicator_->barrier(); }
  /// Gives all ranks the same running statistics, as options().buffers says: before an evaluation
  /// or a save. Integer buffers (num_batches_tracked) are rank 0's either way.
  void synchronize_buffers();

  /// Prints a line on the main process only.
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    if (!is_main_process()) return;
    fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
    std::fflush(stdout);
  }

  const comm::GradientBuckets* buckets() const { return buckets_.get(); }

 private:
  void bind(nn::Module& model);
  void bind(nn::Optimizer& optimizer);
  void bind(data::DataLoader& loader);
  void bind(nn::Schedule& schedule);
  void tie_together();
  void take_turn(data::Batch& batch);
  void step(nn::Optimizer& optimizer);
  void zero_grad();
  void advance(nn::Schedule& schedule) const;

  AcceleratorOptions options_;
  comm::Environment environment_;
  Runtime runtime_;
  std::unique_ptr<comm::Communicator> communicator_;
  nn::Module* model_ = nullptr;
  nn::Parameters trainable_;
  std::vector<nn::Optimizer*> optimizers_;
  std::unique_ptr<comm::GradientBuckets> buckets_;
  Tensor parameter_arena_;
  /// What the batch in hand is to its step.
  comm::GradientBuckets::Pass pass_ = comm::GradientBuckets::Pass::end_of_step;
  enum class Held : std::uint8_t { nothing, part_of_a_step, whole_step };
  Held held_ = Held::nothing;  // which gradients there are
};

}  // namespace collar
