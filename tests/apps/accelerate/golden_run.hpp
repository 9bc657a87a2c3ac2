// SPDX-License-Identifier: Apache-2.0
// A training run that the real accelerate made (golden/runs), the same run made by us, and how far
// the two may be apart: golden/README-models.md, section 6.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/accelerate/accelerator.hpp"
#include "engine/ops/loss.hpp"
#include "nn/nn.hpp"
#include "tests/nn/formula_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/tensors.hpp"

namespace collar::test {

/// The recorded run.
class GoldenRun {
 public:
  explicit GoldenRun(const std::filesystem::path& file)
      : json_(read_json(file)), config_(json_.at("config")) {}

  std::string name() const { return json_.at("name"); }
  const nlohmann::json& config() const { return config_; }
  int ranks() const { return config_.at("world_size"); }
  int accumulation() const { return config_.at("gradient_accumulation_steps"); }
  std::int64_t epochs() const { return config_.at("epochs"); }
  /// Batches of one rank in an epoch.
  std::int64_t batches() const { return json_.at("prepared_batches"); }
  const nlohmann::json& steps() const { return json_.at("steps"); }
  const nlohmann::json& valid() const { return json_.at("valid"); }
  const nlohmann::json& final_state() const { return json_.at("final"); }
  double rate_after_last_step() const { return json_.at("lr_after_last_step"); }
  std::optional<double> clip() const {
    const nlohmann::json& norm = config_.at("clip_grad_norm");
    return norm.is_null() ? std::nullopt : std::optional(norm.get<double>());
  }

  /// What a loss may differ at a step: the largest difference of the two recorded runs until the
  /// step after, ten times.
  double tolerance(std::size_t step) const {
    double loss = 1;
    for (const nlohmann::json& value : steps().at(step).at("loss"))
      loss = std::max(loss, value.get<double>());
    return 10 * largest_until(step,
                              [](const nlohmann::json& s) { return s.at("drift").get<double>(); }) +
           2e-6 * loss;
  }
  /// The same for the norm of the gradients.
  double norm_tolerance(std::size_t step) const {
    const auto difference = [](const nlohmann::json& s) {
      if (!s.contains("grad_norm")) return 0.0;
      return std::abs(s.at("grad_norm").get<double>() - s.at("second_grad_norm").get<double>());
    };
    return 10 * largest_until(step, difference) +
           2e-6 * steps().at(step).at("grad_norm").get<double>();
  }
  /// Steps that can be compared one by one; what comes later is chaos.
  std::size_t sharp_steps() const {
    std::size_t step = 0;
    while (step < steps().size() && tolerance(step) <= 0.1) ++step;
    return step;
  }
  bool sharp_to_the_end() const { return sharp_steps() == steps().size(); }

 private:
  template <typename Value>
  double largest_until(std::size_t step, Value value) const {
    double largest = 0;
    for (std::size_t i = 0; i <= std::min(step + 1, steps().size() - 1); ++i)
      largest = std::max(largest, value(steps().at(i)));
    return largest;
  }

  nlohmann::json json_;
  nlohmann::json config_;
};

/// What a run of ours gave.
struct Replay {
  struct MicroBatch {
    std::vector<std::int64_t> indices;
    double rate = 0;
    std::optional<double> loss{};
    std::optional<double> grad_norm{};
  };
  struct Prediction {
    std::int64_t predicted = 0;
    bool correct = false;
    double loss = 0;
  };

  /// A parameter or buffer.
  struct Totals {
    double l2 = 0;
    double sum = 0;
    double count = 0;
  };

  std::map<std::pair<std::size_t, int>, MicroBatch> batches;  // by step of accelerate's and rank
  std::vector<std::map<std::int64_t, Prediction>> epochs;     // by sample
  std::map<std::string, Totals> final_state;
  std::optional<double> rate_after_last_step;

  /// Takes in what another rank of the same run saw.
  void merge(const Replay& other) {
    batches.insert(other.batches.begin(), other.batches.end());
    epochs.resize(std::max(epochs.size(), other.epochs.size()));
    for (std::size_t i = 0; i < other.epochs.size(); ++i)
      epochs[i].insert(other.epochs[i].begin(), other.epochs[i].end());
  }
};

inline Replay::Totals totals_of(const Tensor& tensor) {
  Replay::Totals totals;
  for (const double value : values_of(tensor)) {
    totals.l2 += value * value;
    totals.sum += value;
    ++totals.count;
  }
  totals.l2 = std::sqrt(totals.l2);
  return totals;
}

/// Runs whose noise grows step by step are only comparable where convolutions are computed
/// directly, as PyTorch does: Winograd's rounding errors are some ten times larger, and AdamW's
/// first steps make of any such difference in a tiny gradient a difference of sign.
/// (resnet18d_full_p1_inorder at step 4: 1e-4 off the float64 run directly, PyTorch's float32 6e-4,
/// Winograd 3e-3 to 9e-3.)
enum class Convolutions : std::uint8_t { direct, as_users_have_them };

/// One thread, as the recorded processes had.
inline AcceleratorOptions accelerator_options(const GoldenRun& run, int virtual_ranks,
                                              Convolutions convolutions) {
  return {.gradient_accumulation_steps = run.accumulation(),
          .virtual_ranks = virtual_ranks,
          .threads = 1,
          .direct_convolutions = convolutions == Convolutions::direct};
}

inline data::LoaderOptions train_loader_options(const GoldenRun& run) {
  const nlohmann::json& config = run.config();
  const bool shuffle = config.at("shuffle");
  return {.batch_size = config.at("batch_size_per_process"),
          .shuffle = shuffle,
          .seed = shuffle ? config.at("seed").get<std::uint64_t>() : 0,
          .workers = 1};
}

inline std::unique_ptr<nn::Optimizer> make_optimizer(const GoldenRun& run,
                                                     const nn::Parameters& parameters) {
  const nlohmann::json& o = run.config().at("optimizer");
  if (o.at("name") == "SGD") {
    return std::make_unique<nn::SGD>(parameters,
                                     nn::SGDOptions{.lr = o.at("lr"),
                                                    .momentum = o.at("momentum"),
                                                    .dampening = o.at("dampening"),
                                                    .weight_decay = o.at("weight_decay"),
                                                    .nesterov = o.at("nesterov")});
  }
  return std::make_unique<nn::AdamW>(parameters,
                                     nn::AdamWOptions{.lr = o.at("lr"),
                                                      .beta1 = o.at("betas").at(0),
                                                      .beta2 = o.at("betas").at(1),
                                                      .epsilon = o.at("eps"),
                                                      .weight_decay = o.at("weight_decay")});
}

inline nn::rate::CosineWithWarmup schedule_formula(const GoldenRun& run) {
  const nlohmann::json& schedule = run.config().at("schedule");
  return {.warmup_steps = schedule.at("num_warmup_steps"),
          .total_steps = schedule.at("num_training_steps"),
          .cycles = schedule.at("num_cycles")};
}

/// The model's guesses about the photos of a prepared loader; those of this process.
inline std::map<std::int64_t, Replay::Prediction> predictions(Accelerator& accelerator,
                                                              nn::Module& model,
                                                              data::DataLoader& loader) {
  const NoGrad no_grad;
  accelerator.synchronize_buffers();
  model.eval();
  std::map<std::int64_t, Replay::Prediction> all;
  for (const data::Batch& batch : loader) {
    const Tensor logits = model(batch.images);
    const std::vector<float> values = logits.to_vector<float>();
    const auto classes = static_cast<std::ptrdiff_t>(logits.shape()[1]);
    for (std::int64_t row = 0; row < batch.valid; ++row) {
      const auto begin = values.begin() + row * classes;
      const auto predicted = std::max_element(begin, begin + classes) - begin;
      const Tensor label = batch.labels.slice(row, row + 1);
      all[batch.indices[static_cast<std::size_t>(row)]] = {
          predicted, predicted == static_cast<std::int64_t>(label.item()),
          cross_entropy(logits.slice(row, row + 1), label).item()};
    }
  }
  model.train();
  return all;
}

/// Makes the recorded run with an accelerator that has its number of logical ranks, as far as it
/// can be compared.
inline Replay replay(const GoldenRun& run, Accelerator& accelerator, const data::Dataset& train,
                     const data::Dataset& valid) {
  const auto model =
      nn::test::formula_model(run.config().at("model"), run.config().at("num_classes"),
                              run.config().at("damped"), accelerator.device());
  if (run.config().at("mode") == "frozen") model->freeze_all_but(model->classifier());
  const auto optimizer = make_optimizer(run, model->trainable_parameters());
  nn::CosineWithWarmup schedule(*optimizer, schedule_formula(run));
  data::DataLoader train_loader(train, train_loader_options(run));
  data::DataLoader valid_loader(valid, {.batch_size = train_loader.options().batch_size});
  accelerator.prepare(*model, *optimizer, train_loader, valid_loader, schedule);

  Replay result;
  const std::size_t wanted = run.sharp_steps();
  for (std::int64_t epoch = 0; epoch < run.epochs(); ++epoch) {
    for (const data::Batch& batch : train_loader) {
      const auto step = static_cast<std::size_t>(epoch * run.batches() + batch.index);
      const Tensor loss = cross_entropy((*model)(batch.images), batch.labels);
      accelerator.backward(loss);
      result.batches[{step, batch.rank}] = {
          batch.indices, optimizer->learning_rates().front(), loss.item(),
          run.clip() ? accelerator.clip_grad_norm(*run.clip()) : std::nullopt};
      optimizer->step();
      schedule.step();
      optimizer->zero_grad();
      if (accelerator.sync_gradients() && step + 1 >= wanted && !run.sharp_to_the_end())
        return result;
    }
    result.epochs.push_back(predictions(accelerator, *model, valid_loader));
  }
  for (const auto& [name, tensor] : model->state_dict())
    result.final_state[name] = totals_of(tensor);
  result.rate_after_last_step = optimizer->learning_rates().front();
  return result;
}

/// The order of samples and the learning rates of the whole run, without a model.
inline Replay replay_without_model(const GoldenRun& run, Accelerator& accelerator,
                                   const data::Dataset& train) {
  nn::Parameters none{{"nothing", Tensor::zeros({1})}};
  const auto optimizer = make_optimizer(run, none);
  nn::CosineWithWarmup schedule(*optimizer, schedule_formula(run));
  data::DataLoader loader(train, train_loader_options(run));
  accelerator.prepare(loader, schedule);
  Replay result;
  for (std::int64_t epoch = 0; epoch < run.epochs(); ++epoch) {
    for (const data::Batch& batch : loader) {
      const auto step = static_cast<std::size_t>(epoch * run.batches() + batch.index);
      result.batches[{step, batch.rank}] = {batch.indices, optimizer->learning_rates().front()};
      schedule.step();
    }
  }
  result.rate_after_last_step = optimizer->learning_rates().front();
  return result;
}

/// Compares a run of ours with the recorded one. Empty if all is as it should be.
class Comparison {
 public:
  explicit Comparison(const GoldenRun& run) : run_(run) {}

  std::string text() const { return text_; }

  /// Samples and rates, everywhere we have been; losses and norms as far as they are sharp.
  void steps(const Replay& ours) {
    for (const auto& [at, batch] : ours.batches) {
      const auto [step, rank] = at;
      const nlohmann::json& theirs = run_.steps().at(step);
      const auto r = static_cast<std::size_t>(rank);
      const std::string where = fmt::format("step {}, rank {}", step, rank);
      if (batch.indices != theirs.at("indices").at(r).get<std::vector<std::int64_t>>())
        text_ += fmt::format("{}: other samples\n", where);
      rate(where, batch.rate, theirs.at("lr"));
      if (step >= run_.sharp_steps()) continue;
      if (batch.loss) {
        number(where + ": loss", *batch.loss, theirs.at("loss").at(r), run_.tolerance(step));
      }
      if (batch.grad_norm) {
        number(where + ": norm of the gradients", *batch.grad_norm, theirs.at("grad_norm"),
               run_.norm_tolerance(step));
      }
    }
  }

  /// Whether every rank's batches are there, until the given step.
  void completeness(const Replay& ours, std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      int norms = 0;
      for (int rank = 0; rank < run_.ranks(); ++rank) {
        const auto found = ours.batches.find({step, rank});
        if (found == ours.batches.end())
          text_ += fmt::format("step {}, rank {}: missing\n", step, rank);
        else if (found->second.grad_norm)
          ++norms;
      }
      if ((norms > 0) != run_.steps().at(step).contains("grad_norm"))
        text_ += fmt::format("step {}: {} of {} ranks clipped\n", step, norms, run_.ranks());
    }
  }

  /// Photo by photo after each epoch. A guess counts where its lead is large against the noise.
  void epochs(const Replay& ours) {
    for (std::size_t epoch = 0; epoch < ours.epochs.size(); ++epoch) {
      const nlohmann::json& theirs = run_.valid().at(epoch);
      const auto& guesses = ours.epochs[epoch];
      const nlohmann::json& predicted = theirs.at("valid_predictions");
      if (guesses.size() != predicted.size()) {
        text_ += fmt::format("epoch {}: {} photos, expected {}\n", epoch, guesses.size(),
                             predicted.size());
        continue;
      }
      const double noise = run_.tolerance(last_step_of(epoch));
      double loss = 0;
      int correct = 0, in_doubt = 0;
      for (const auto& [sample, guess] : guesses) {
        const auto i = static_cast<std::size_t>(sample);
        loss += guess.loss / static_cast<double>(guesses.size());
        correct += guess.correct ? 1 : 0;
        if (guess.predicted == predicted.at(i).get<std::int64_t>()) continue;
        ++in_doubt;
        const double margin = theirs.at("valid_margins").at(i);
        if (margin > 2 * noise) {
          text_ += fmt::format("epoch {}: photo {} is class {}, expected {} by {}\n", epoch, sample,
                               guess.predicted, predicted.at(i).get<std::int64_t>(), margin);
        }
      }
      number(fmt::format("epoch {}: validation loss", epoch), loss, theirs.at("valid_loss"), noise);
      number(fmt::format("epoch {}: photos guessed right", epoch), correct,
             theirs.at("valid_correct"), in_doubt);
    }
  }

  /// Every parameter and buffer, and the rate that a further step would use.
  void end(const Replay& ours) {
    if (!run_.sharp_to_the_end()) return;
    for (const auto& [name, totals] : ours.final_state) {
      const nlohmann::json& theirs = run_.final_state().at(name);
      const double l2 = theirs.at("l2");
      const double tolerance = std::max(8 * theirs.at("second_diff_l2").get<double>(), 1e-6 * l2);
      number(name + ": l2", totals.l2, l2, tolerance);
      number(name + ": sum", totals.sum, theirs.at("sum"), tolerance * std::sqrt(totals.count));
    }
    if (ours.final_state.size() != run_.final_state().size()) {
      text_ += fmt::format("{} tensors at the end, expected {}\n", ours.final_state.size(),
                           run_.final_state().size());
    }
    rate("after the last step", ours.rate_after_last_step.value_or(-1),
         run_.rate_after_last_step());
  }

  void rate(const std::string& where, double ours, double theirs) {
    number(where + ": learning rate", ours, theirs, 1e-14 * std::abs(theirs));
  }

 private:
  std::size_t last_step_of(std::size_t epoch) const {
    return (epoch + 1) * static_cast<std::size_t>(run_.batches()) - 1;
  }
  void number(const std::string& what, double ours, double theirs, double tolerance) {
    if (!(std::abs(ours - theirs) <= tolerance)) {
      text_ +=
          fmt::format("{} is {:.9g}, expected {:.9g} +- {:.2g}\n", what, ours, theirs, tolerance);
    }
  }

  const GoldenRun& run_;
  std::string text_;
};

/// What is wrong with a run of ours; empty if nothing is.
inline std::string differences(const GoldenRun& run, const Replay& ours) {
  Comparison comparison(run);
  comparison.completeness(ours, run.sharp_steps());
  comparison.steps(ours);
  comparison.epochs(ours);
  comparison.end(ours);
  return comparison.text();
}

}  // namespace collar::test
