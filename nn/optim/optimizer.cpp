// SPDX-License-Identifier: Apache-2.0
#include "nn/optim/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "kernels/core/error.hpp"

namespace collar::nn {
namespace {

using Part = std::pair<std::int64_t, std::int64_t>;

DeviceContext& context_of(const std::string& name, const Tensor& parameter) {
  if (parameter.context() == nullptr) {
    throw UsageError(
        fmt::format("optimizer: parameter {} is on no device yet; call to(context) on "
                    "the model, or let Accelerator::prepare do it, before the first step",
                    name));
  }
  return *parameter.context();
}

}  // namespace

Optimizer::Optimizer(const std::vector<Parameters>& groups) : group_count_(groups.size()) {
  std::set<std::string> names;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const Parameter& parameter : groups[group]) {
      if (!names.insert(parameter.name).second) {
        throw UsageError(fmt::format("optimizer: parameter {} is listed twice", parameter.name));
      }
      if (parameter.tensor.dtype() != DType::f32 || parameter.tensor.layout() != Layout::plain) {
        throw ShapeError(fmt::format("optimizer: parameter {} is {}; expected plain f32",
                                     parameter.name, describe(parameter.tensor)));
      }
      slots_.push_back({.name = parameter.name, .parameter = parameter.tensor, .group = group});
    }
  }
  if (slots_.empty()) {
    throw UsageError("optimizer: no parameters to update; is everything frozen?");
  }
  order_.resize(slots_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void Optimizer::step() {
  if (driver_.step) {
    driver_.step(*this);
  } else {
    update();
  }
}

void Optimizer::zero_grad() {
  if (driver_.zero_grad) {
    driver_.zero_grad(*this);
  } else {
    clear_gradients();
  }
}

void Optimizer::clear_gradients() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

void Optimizer::set_learning_rates(const std::vector<double>& rates) {
  if (rates.size() != group_count_) {
    throw UsageError(fmt::format("optimizer: {} learning rates for {} parameter groups",
                                 rates.size(), group_count_));
  }
  for (std::size_t group = 0; group < group_count_; ++group) set_learning_rate(group, rates[group]);
}

Parameters Optimizer::parameters() const {
  Parameters all;
  for (const Slot& slot : slots_) all.push_back({slot.name, slot.parameter});
  return all;
}

void Optimizer::bind_arena(const Tensor& arena) {
  const auto* base = static_cast<const float*>(arena.view().data);
  arena_elements_ = arena.numel();
  for (Slot& slot : slots_) {
    slot.offset = -1;
    const Tensor gradient = slot.parameter.grad_storage();
    if (!gradient.defined()) continue;
    const auto* place = static_cast<const float*>(gradient.view().data);
    const std::less<const float*> before;
    if (!before(place, base) && before(place, base + arena_elements_)) slot.offset = place - base;
  }
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return slots_[a].offset < slots_[b].offset;
  });
  laid_out_ = false;
}

void Optimizer::lay_out_state() {
  const auto names = state_names();
  if (laid_out_ && state_count_ == names.size()) return;
  DeviceContext& context = context_of(slots_.front().name, slots_.front().parameter);
  std::int64_t total = 0;
  for (const Slot& slot : slots_) total += slot.parameter.numel();

  std::vector<Tensor> arenas;
  for (std::size_t i = 0; i < names.size(); ++i) {
    arenas.push_back(Tensor::zeros({total}, DType::f32, &context));
  }
  std::int64_t begin = 0;
  for (const std::size_t index : order_) {
    Slot& slot = slots_[index];
    const std::int64_t end = begin + slot.parameter.numel();
    const bool had_state = slot.state.size() == names.size();
    std::vector<Tensor> state;
    for (std::size_t i = 0; i < names.size(); ++i) {
      state.push_back(arenas[i].slice(begin, end).viewed_as(slot.parameter.shape()));
      if (had_state) state.back().copy_from(slot.state[i]);
    }
    if (!had_state) slot.steps = 0;
    slot.state = std::move(state);
    begin = end;
  }
  state_count_ = names.size();
  laid_out_ = true;
}

Optimizer::Piece Optimizer::piece_of(Slot& slot, const Tensor& gradient, std::int64_t first,
                                     std::int64_t last) {
  if (slot.last_update != update_number_) {
    slot.last_update = update_number_;
    ++slot.steps;
  }
  Piece piece{.group = slot.group,
              .step = slot.steps,
              .parameter = static_cast<float*>(slot.parameter.view().data) + first,
              .gradient = static_cast<const float*>(gradient.view().data) + first,
              .count = last - first};
  for (std::size_t i = 0; i < slot.state.size(); ++i) {
    piece.state[i] = static_cast<float*>(slot.state[i].view().data) + first;
  }
  return piece;
}

template <typename PartOf>
void Optimizer::update_parts(const PartOf& part_of) {
  lay_out_state();
  DeviceContext& context = context_of(slots_.front().name, slots_.front().parameter);
  const auto continues = [this](const Piece& piece, const Piece& next) {
    bool neighbours = piece.group == next.group && piece.step == next.step &&
                      piece.parameter + piece.count == next.parameter &&
                      piece.gradient + piece.count == next.gradient;
    for (std::size_t i = 0; i < state_count_; ++i) {
      neighbours = neighbours && piece.state[i] + piece.count == next.state[i];
    }
    return neighbours;
  };
  Piece pending;
  for (const std::size_t index : order_) {
    Slot& slot = slots_[index];
    const auto [first, last] = part_of(slot);
    if (first >= last) continue;
    const Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    if (&context_of(slot.name, slot.parameter) != &context) {
      throw UsageError(fmt::format("optimizer: parameter {} is on another device than {}",
                                   slot.name, slots_.front().name));
    }
    const Piece piece = piece_of(slot, gradient, first, last);
    if (pending.count > 0 && continues(pending, piece)) {
      pending.count += piece.count;
    } else {
      if (pending.count > 0) update_piece(context, pending);
      pending = piece;
    }
    slot.parameter.changed_in_place();
  }
  if (pending.count > 0) update_piece(context, pending);
}

void Optimizer::begin_update() {
  ++update_number_;
}

void Optimizer::update() {
  begin_update();
  update_parts([](const Slot& slot) { return Part{0, slot.parameter.numel()}; });
}

void Optimizer::update_range(std::int64_t begin, std::int64_t end) {
  if (begin < 0 || begin > end || end > arena_elements_) {
    throw UsageError(fmt::format("optimizer: range [{}, {}) of a gradient arena of {} elements",
                                 begin, end, std::max<std::int64_t>(0, arena_elements_)));
  }
  if (update_number_ == 0)
    throw UsageError("optimizer: begin_update() comes before update_range()");
  update_parts([begin, end](const Slot& slot) {
    if (slot.offset < 0) return Part{0, 0};
    return Part{std::max<std::int64_t>(0, begin - slot.offset),
                std::min(slot.parameter.numel(), end - slot.offset)};
  });
}

Parameters Optimizer::state() {
  const auto names = state_names();
  Parameters all;
  for (const Slot& slot : slots_) {
    all.push_back({slot.name + "/step", Tensor::from<std::int64_t>({slot.steps}, {})});
    if (slot.steps == 0) continue;
    for (std::size_t i = 0; i < slot.state.size(); ++i) {
      all.push_back({fmt::format("{}/{}", slot.name, names[i]), slot.state[i]});
    }
  }
  return all;
}

void Optimizer::load_state(const Parameters& state) {
  std::map<std::string, Tensor> given;
  for (const Parameter& entry : state) given.emplace(entry.name, entry.tensor);
  std::string problems;
  const auto take = [&](const std::string& name, const Shape& shape, DType dtype) {
    const auto found = given.find(name);
    if (found == given.end()) {
      problems += fmt::format("\n  missing: {}", name);
      return Tensor{};
    }
    const Tensor tensor = found->second;
    given.erase(found);
    if (tensor.shape() == shape && tensor.dtype() == dtype) return tensor;
    problems += fmt::format("\n  {}: {} in the file, expected {} {}", name, describe(tensor),
                            name_of(dtype), to_string(shape));
    return Tensor{};
  };

  const auto names = state_names();
  struct Loaded {
    std::int64_t steps = 0;
    std::vector<Tensor> state;
  };
  std::vector<Loaded> loaded(slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const Tensor step = take(slots_[s].name + "/step", {}, DType::i64);
    loaded[s].steps = step.defined() ? static_cast<std::int64_t>(step.item()) : 0;
    if (loaded[s].steps == 0) continue;
    for (const auto name : names) {
      loaded[s].state.push_back(take(fmt::format("{}/{}", slots_[s].name, name),
                                     slots_[s].parameter.shape(), DType::f32));
    }
  }
  for (const auto& [name, tensor] : given) problems += fmt::format("\n  unexpected: {}", name);
  if (!problems.empty()) {
    throw FileError("optimizer: the saved state does not fit these parameters:" + problems);
  }

  for (std::size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].steps = loaded[s].steps;
    slots_[s].state.clear();
    for (const Tensor& tensor : loaded[s].state) slots_[s].state.push_back(tensor.clone());
  }
  laid_out_ = false;
}

}  // namespace collar::nn
