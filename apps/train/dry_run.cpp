// SPDX-License-Identifier: Apache-2.0
#include "apps/train/dry_run.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/accelerate/json_text.hpp"
#include "apps/counted.hpp"
#include "apps/train/recipe.hpp"

namespace collar::apps {
namespace {

// The rate of the first, the highest and the last step, as the schedule will give them.
struct Rates {
  double first = 0;
  double highest = 0;
  double last = 0;
};

Rates rates_of(const TrainOptions& options, nn::Optimizer& optimizer, const Lengths& lengths) {
  const auto schedule = make_schedule(options, optimizer, lengths);
  Rates rates;
  for (std::int64_t step = 0; step < lengths.total_steps; ++step) {
    const double rate = schedule->learning_rates().front();
    if (step == 0) rates.first = rate;
    rates.highest = std::max(rates.highest, rate);
    rates.last = rate;
    schedule->advance_by(options.logical_ranks());
  }
  return rates;
}

double megabytes(std::int64_t floats) {
  return static_cast<double>(floats) * sizeof(float) / 1e6;
}

}  // namespace

ExitCode show_plan(const TrainOptions& options) {
  const Photos photos = open_photos(options);
  const auto classes = static_cast<std::int64_t>(photos.train.classes().size());
  const StartingPoint start =
      make_model(options, options.num_classes > 0 ? options.num_classes : classes);
  const auto optimizer = make_optimizer(options, *start.model);
  const Lengths lengths = lengths_of(options, photos.train.size());
  const Rates rates = rates_of(options, *optimizer, lengths);

  std::vector<std::string> stages;
  std::map<std::string, std::int64_t> elements;
  std::int64_t trainable = 0;
  for (const nn::Parameter& parameter : start.model->named_parameters()) {
    const std::string stage = parameter.name.substr(0, parameter.name.find('.'));
    if (!elements.contains(stage)) stages.push_back(stage);
    elements[stage] += parameter.tensor.numel();
    if (parameter.tensor.requires_grad()) trainable += parameter.tensor.numel();
  }
  const std::int64_t all = start.model->parameter_count();
  const double memory = megabytes(all) + megabytes(trainable) * (1 + optimizer_states(options));

  if (options.json) {
    const nlohmann::ordered_json json{{"model", options.model},
                                      {"parameters", all},
                                      {"trained", trainable},
                                      {"classes", classes},
                                      {"train_photos", photos.train.size()},
                                      {"valid_photos", photos.valid.size()},
                                      {"logical_ranks", options.logical_ranks()},
                                      {"steps_per_epoch", lengths.steps_per_epoch},
                                      {"total_steps", lengths.total_steps},
                                      {"schedule_ticks", lengths.schedule_ticks},
                                      {"first_lr", rates.first},
                                      {"highest_lr", rates.highest},
                                      {"last_lr", rates.last},
                                      {"state_megabytes", memory}};
    fmt::print("{}\n", json_text(json));
    return ExitCode::done;
  }
  fmt::print("{}\n", to_toml(options));
  fmt::print("# {}\n", options.model);
  for (const std::string& stage : stages)
    fmt::print("#   {:<8} {:>12} parameters\n", stage, elements[stage]);
  fmt::print("#   {:<8} {:>12} parameters, {} trained\n", "all", all, trainable);
  for (const std::string& note : start.notes) fmt::print("# {}\n", note);
  fmt::print("# {} of {}, {} to validate{}\n", counted(photos.train.size(), "photo"),
             counted(classes, "class"), with_thousands(photos.valid.size()),
             photos.valid_was_split ? " (a fifth of each class)" : "");
  fmt::print("# {} of {} on {}: {} of {}\n", counted(options.epochs, "epoch"),
             counted(lengths.steps_per_epoch, "step"), counted(options.logical_ranks(), "rank"),
             counted(lengths.total_steps, "step"),
             counted(static_cast<std::int64_t>(options.batch_size) * options.logical_ranks() *
                         options.grad_accum_steps,
                     "image"));
  fmt::print("# learning rate {:.3g} at first, {:.3g} at most, {:.3g} at the last step\n",
             rates.first, rates.highest, rates.last);
  fmt::print(
      "# {:.0f} MB of weights, gradients and optimizer state in each process, besides "
      "activations\n",
      memory);
  return ExitCode::done;
}

}  // namespace collar::apps
