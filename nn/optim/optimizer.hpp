// SPDX-License-Identifier: Apache-2.0
// What all optimizers share: groups of parameters, the state kept for each parameter, and the
// update of all of them or of any range of a gradient arena. What is left to AdamW, Adam and SGD is
// the arithmetic.
//
// State lies in flat arenas in the order of the gradients, so that neighbouring parameters of a
// group are updated by one kernel call; but it belongs to a parameter's name, and gradients may lie
// anywhere.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter.hpp"

namespace collar::nn {

/// Parameters that are updated with the same options.
template <typename Options>
struct ParameterGroup {
  Parameters parameters{};
  Options options{};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// What a training loop calls: update(), unless a driver decides.
  void step();
  /// What a training loop calls: clear_gradients(), unless a driver decides.
  void zero_grad();

  /// Updates every parameter that has a gradient. Throws UsageError if one is bound to no device.
  void update();
  /// Forgets the gradients of all parameters.
  void clear_gradients();

  /// Says that the gradients lie in `arena` (f32, plain): needed by update_range, and to be called
  /// again whenever they have moved. Parameters with a gradient elsewhere are updated by update()
  /// only.
  void bind_arena(const Tensor& arena);
  /// Begins an update in pieces: one step for every parameter that a following update_range
  /// touches.
  void begin_update();
  /// Updates the elements whose gradients are elements [begin, end) of the bound arena. The ranges
  /// between two calls of begin_update must not overlap. Parameters without a gradient are passed
  /// over.
  void update_range(std::int64_t begin, std::int64_t end);

  std::size_t group_count() const { return group_count_; }
  /// The learning rate of each group.
  virtual std::vector<double> learning_rates() const = 0;
  /// Throws UsageError unless there is one for each group.
  void set_learning_rates(const std::vector<double>& rates);
  /// Sets the momentum (SGD) or beta1 (Adam) of all groups.
  virtual void set_momentum(double momentum) = 0;

  /// All parameters, group by group, in the order they were given.
  Parameters parameters() const;

  /// "<parameter>/step" and, once a step was made, "<parameter>/<state>" under torch's names
  /// (exp_avg, exp_avg_sq, momentum_buffer). The tensors are views of the state, not copies.
  Parameters state();
  /// Takes over what state() gave. Throws FileError that lists everything missing, unexpected or of
  /// another shape; then nothing has changed.
  void load_state(const Parameters& state);

  /// Puts these in the place of update() and clear_gradients() when step() and zero_grad() are
  /// called: a run that accumulates, or overlaps updates with communication, decides itself.
  struct Driver {
    std::function<void(Optimizer&)> step{};
    std::function<void(Optimizer&)> zero_grad{};
  };
  void set_driver(Driver driver) { driver_ = std::move(driver); }

 protected:
  static constexpr std::size_t kMaxStates = 2;

  /// Elements that lie side by side in all their arrays and are updated alike.
  struct Piece {
    std::size_t group = 0;
    std::int64_t step = 1;  ///< of these parameters, counted from 1
    float* parameter = nullptr;
    const float* gradient = nullptr;
    std::array<float*, kMaxStates> state{};
    std::int64_t count = 0;
  };

  /// Throws UsageError for no parameters at all or one that is listed twice, ShapeError for one
  /// that is not f32.
  explicit Optimizer(const std::vector<Parameters>& groups);

  /// The names of the tensors kept for each parameter; may change with the options.
  virtual std::vector<std::string_view> state_names() const = 0;
  virtual void set_learning_rate(std::size_t group, double rate) = 0;
  virtual void update_piece(DeviceContext& context, const Piece& piece) = 0;

 private:
  struct Slot {
    std::string name{};
    Tensor parameter{};
    std::size_t group = 0;
    std::int64_t offset = -1;  ///< of the gradient in the arena; -1: elsewhere
    std::int64_t steps = 0;
    std::int64_t last_update = 0;  ///< the number of the update that made the last step
    std::vector<Tensor> state{};
  };

  void lay_out_state();
  /// Elements [first, last) of a parameter, as a piece.
  Piece piece_of(Slot& slot, const Tensor& gradient, std::int64_t first, std::int64_t last);
  /// Runs over the slots and the part of each that is wanted, merging neighbours.
  template <typename PartOf>
  void update_parts(const PartOf& part_of);

  std::vector<Slot> slots_;         // group by group, as given
  std::vector<std::size_t> order_;  // of the slots' state: that of their gradients in the arena
  std::size_t group_count_;
  std::size_t state_count_ = 0;  // as laid out
  bool laid_out_ = false;
  std::int64_t update_number_ = 0;
  std::int64_t arena_elements_ = -1;
  Driver driver_;
};

}  // namespace collar::nn
