// SPDX-License-Identifier: Apache-2.0
#include "apps/train/trainer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>

#include "apps/accelerate/printable.hpp"
#include "apps/build_info.hpp"
#include "apps/saved_model.hpp"
#include "engine/ops/loss.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;

data::LoaderOptions loader_options(const TrainOptions& options, bool train) {
  data::LoaderOptions loader;
  loader.batch_size = options.batch_size;
  loader.shuffle = train;
  loader.seed = options.seed;
  loader.workers = options.workers;
  return loader;
}

std::string with_thousands(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

// What the last bits of results depend on besides the options.
nlohmann::json arithmetic_of(DeviceContext& device) {
  return std::visit(
      [](const auto& context) {
        return nlohmann::json{{"threads of a process", context.threads()},
                              {"instructions", name_of(context.isa())},
                              {"oneDNN", build_info().onednn}};
      },
      device);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, Accelerator& accelerator)
    : options_(options),
      accelerator_(accelerator),
      photos_(open_photos(options)),
      lengths_(lengths_of(options, photos_.train.size())),
      train_loader_(photos_.train, loader_options(options, true)),
      valid_loader_(photos_.valid, loader_options(options, false)) {
  require_values_to_normalise(options, photos_.train.size());
  const auto classes = static_cast<std::int64_t>(photos_.train.classes().size());
  StartingPoint start =
      make_model(options, options.num_classes > 0 ? options.num_classes : classes);
  model_ = std::move(start.model);
  optimizer_ = make_optimizer(options, *model_);
  schedule_ = make_schedule(options, *optimizer_, lengths_);
  accelerator.prepare(*model_, *optimizer_, *schedule_, train_loader_, valid_loader_);
  loss_options_.label_smoothing = options.label_smoothing;
  if (is_main()) {
    ProgressOptions progress;
    progress.bar = wants_bar(progress.descriptor, options.plain || options.json);
    progress.color = wants_color(progress.descriptor, options.plain || options.json);
    progress.log_interval = options.log_interval;
    progress_ = std::make_unique<Progress>(progress);
  }
  describe();
  for (const std::string& text : start.notes) note(text);
}

void Trainer::note(const std::string& text) const {
  if (progress_ != nullptr) progress_->line(text);
}

// Results go to stdout: lines of JSON for programs, or lines for people.
void Trainer::result(const nlohmann::ordered_json& json, const std::string& text) const {
  if (!is_main()) return;
  if (!options_.json) {
    progress_->line(text);
    return;
  }
  fmt::print("{}\n", json.dump());
  std::fflush(stdout);
}

void Trainer::describe() const {
  std::int64_t trainable = 0;
  for (const nn::Parameter& parameter : model_->trainable_parameters())
    trainable += parameter.tensor.numel();
  note(fmt::format(
      "{} photos of {} classes to train on, {} to validate{}", with_thousands(photos_.train.size()),
      photos_.train.classes().size(), with_thousands(photos_.valid.size()),
      photos_.valid_was_split ? " (a fifth of each class: the folder has no valid/)" : ""));
  if (photos_.train.files().hidden > 0) {
    note(fmt::format("{} hidden files passed over", photos_.train.files().hidden));
  }
  note(fmt::format("{}: {} parameters, {} of them trained; {} {} on {} {} of {} {}", options_.model,
                   with_thousands(model_->parameter_count()), with_thousands(trainable),
                   options_.opt, options_.precision, accelerator_.num_processes(),
                   accelerator_.num_processes() == 1 ? "process" : "processes",
                   options_.virtual_ranks, options_.virtual_ranks == 1 ? "rank" : "ranks"));
  note(fmt::format("{} epochs of {} steps of {} images", options_.epochs, lengths_.steps_per_epoch,
                   static_cast<std::int64_t>(options_.batch_size) * accelerator_.logical_ranks() *
                       options_.grad_accum_steps));
}

// Another number of photos is another order of all of them.
void Trainer::require_same_photos(const CheckpointInfo& info) const {
  if (info.description.value("classes", photos_.train.classes()) != photos_.train.classes()) {
    throw UsageError(
        fmt::format("--resume: the classes in {} are not those that the run was "
                    "started with; --force goes on all the same",
                    options_.data));
  }
  if (info.photos != photos_.train.size()) {
    throw UsageError(
        fmt::format("--resume: the run was started with {} photos to train on, {} has {}, so going "
                    "on would not give what it would have given; --force goes on all the same",
                    info.photos, options_.data, photos_.train.size()));
  }
}

void Trainer::warn_of_other_arithmetic(const CheckpointInfo& info) const {
  const nlohmann::json now = arithmetic_of(accelerator_.device());
  const nlohmann::json before = info.description.value("arithmetic", now);
  for (const auto& [name, value] : now.items()) {
    const nlohmann::json was = before.value(name, value);
    if (was == value) continue;
    note(fmt::format("warning: {}: {} before, {} now, so results may differ in their last bits",
                     name, was.dump(), value.dump()));
  }
}

void Trainer::resume(const CheckpointFile& checkpoint) {
  const CheckpointInfo info = read_checkpoint_info(checkpoint);
  const std::vector<comm::Claim> claims{
      {"the checkpoint", checkpoint.path().native() + " " + checkpoint.save_id()}};
  comm::require_agreement(accelerator_.communicator(), "state to go on from", claims);
  if (!options_.force) require_same_photos(info);
  restore_checkpoint(checkpoint, trained());
  position_ = info.position;
  position_.finished = false;
  saved_ = position_;
  train_loader_.set_epoch(position_.epoch);
  train_loader_.start_at(position_.batch);
  note(fmt::format("going on from {} (step {}, epoch {})", checkpoint.path().native(),
                   position_.step, position_.epoch + 1));
  warn_of_other_arithmetic(info);
}

ExitCode Trainer::run(RunFolder* folder) {
  folder_ = folder;
  if (folder_ != nullptr) {
    folder_->write_config(to_toml(options_));
    folder_->truncate_after(position_.step, position_.epoch);
    const fs::path aside = set_aside_later(folder_->checkpoints(), position_.step);
    if (!aside.empty())
      note(fmt::format("checkpoints of later steps were moved to {}", aside.string()));
  }
  model_->train();
  while (position_.step < lengths_.total_steps || epoch_is_over()) {
    const ExitCode code = train_epoch();
    if (code != ExitCode::done) return code;
  }
  finish();
  return ExitCode::done;
}

ExitCode Trainer::train_epoch() {
  epoch_ = Meter();
  interval_ = Meter();
  for (const data::Batch& batch : train_loader_) {
    micro_batch(batch);
    if (!accelerator_.sync_gradients()) continue;
    const StepOutcome outcome = end_step(batch);
    if (outcome.stop != StopRequest::none) {
      if (position_ != saved_) save();
      note(fmt::format("stopped at step {}, and saved; the same command with --resume auto goes on",
                       position_.step));
      return outcome.stop == StopRequest::interrupt ? ExitCode::interrupted
                                                    : ExitCode::stopped_and_saved;
    }
    if (position_.step >= lengths_.total_steps) break;
    if (!epoch_is_over() && checkpoint_due(false)) save();
  }
  if (epoch_is_over()) end_epoch();
  return ExitCode::done;
}

void Trainer::micro_batch(const data::Batch& batch) {
  Tensor loss = cross_entropy((*model_)(batch.images), batch.labels, loss_options_);
  accelerator_.backward(loss);
  step_loss_.add(loss.item());
  for (Meter* meter : {&interval_, &epoch_}) {
    meter->images += batch.rows();
    meter->wait_seconds += batch.wait_seconds;
  }
}

Trainer::StepOutcome Trainer::end_step(const data::Batch& batch) {
  const bool logged = (position_.step + 1) % options_.log_interval == 0;
  std::optional<double> norm;
  if (options_.clip_grad > 0) {
    norm = accelerator_.clip_grad_norm(options_.clip_grad);
  } else if (logged) {
    norm = accelerator_.grad_norm();
  }
  const double rate = schedule_->learning_rates().front();

  // One small reduction a step: the loss, and whether some rank has been asked to stop.
  const StopRequest request = stop_signal_.request();
  std::array<double, 3> shared{step_loss_.value() / accelerator_.num_processes(),
                               request == StopRequest::interrupt ? 1.0 : 0.0,
                               request == StopRequest::save_and_exit ? 1.0 : 0.0};
  accelerator_.communicator().all_reduce(std::span(shared));
  StepOutcome outcome;
  outcome.loss = shared[0];
  if (!std::isfinite(outcome.loss)) fail_on_loss(batch, outcome.loss);
  if (shared[1] > 0) outcome.stop = StopRequest::interrupt;
  if (shared[2] > 0) outcome.stop = StopRequest::save_and_exit;

  optimizer_->step();
  schedule_->step();
  optimizer_->zero_grad();

  ++position_.step;
  position_.batch = batch.index + 1;
  position_.loss_sum += outcome.loss;
  step_loss_ = {};
  log_step(outcome, rate, logged ? norm : std::nullopt);
  return outcome;
}

void Trainer::fail_on_loss(const data::Batch& batch, double loss) const {
  std::string photos;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, batch.indices.size()); ++i) {
    photos +=
        fmt::format("{}{}", i == 0 ? "" : ", ", printable(photos_.train.name(batch.indices[i])));
  }
  throw NumericsError(
      fmt::format("the loss became {} at step {} (epoch {}); rank {}'s last batch began with {}. A "
                  "smaller --lr, --warmup-steps or "
                  "--clip-grad 1 usually helps; --resume auto goes on from the last checkpoint",
                  std::isnan(loss) ? "nan" : "infinite", position_.step + 1, batch.epoch + 1,
                  accelerator_.process_index(), photos));
}

void Trainer::log_step(const StepOutcome& outcome, double rate, std::optional<double> grad_norm) {
  if (!is_main()) return;
  const double seconds = std::max(interval_.seconds(), 1e-9);
  const double speed =
      static_cast<double>(interval_.images * accelerator_.num_processes()) / seconds;
  const double wait = std::min(1.0, interval_.wait_seconds / seconds);
  const auto epoch = static_cast<int>(position_.epoch);
  progress_->step({.epoch = epoch + 1,
                   .epochs = options_.epochs,
                   .step = steps_of_epoch(),
                   .steps = lengths_.steps_per_epoch,
                   .total_step = position_.step,
                   .total_steps = lengths_.total_steps,
                   .loss = outcome.loss,
                   .lr = rate,
                   .images_per_second = speed,
                   .data_wait = wait});
  if (position_.step % options_.log_interval != 0) return;
  const StepMetrics metrics{position_.step, epoch, outcome.loss, rate, speed, wait, grad_norm};
  folder_->log(metrics);
  if (options_.json) result(to_json(metrics), "");
  interval_ = Meter();
}

void Trainer::end_epoch() {
  const double speed = static_cast<double>(epoch_.images * accelerator_.num_processes()) /
                       std::max(epoch_.seconds(), 1e-9);
  const double seconds = epoch_.seconds();
  const Evaluation valid = evaluate(accelerator_, *model_, valid_loader_);
  const auto epoch = static_cast<int>(position_.epoch);
  const double train_loss = position_.loss_sum / static_cast<double>(steps_of_epoch());
  const EpochMetrics metrics{.epoch = epoch,
                             .step = position_.step,
                             .train_loss = train_loss,
                             .valid_loss = valid.loss,
                             .top1 = valid.accuracy.top1(),
                             .top5 = valid.accuracy.top5(),
                             .lr = schedule_->learning_rates().front(),
                             .images_per_second = speed,
                             .seconds = seconds};
  ++position_.epoch;
  position_.batch = 0;
  position_.loss_sum = 0;
  if (valid.accuracy.top1() > position_.best_top1) {
    position_.best_top1 = valid.accuracy.top1();
    position_.best_epoch = position_.epoch;
  }
  if (folder_ != nullptr) folder_->log(metrics);
  result(to_json(metrics), fmt::format("epoch {}/{}: train loss {:.4f}, valid loss {:.4f}, top-1 "
                                       "{:.2f} %, top-5 {:.2f} %, {:.1f} img/s",
                                       position_.epoch, options_.epochs, train_loss, valid.loss,
                                       valid.accuracy.top1(), valid.accuracy.top5(), speed));
  if (position_.step < lengths_.total_steps && checkpoint_due(true)) save();
}

std::int64_t Trainer::steps_of_epoch() const {
  return (position_.batch + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
}

bool Trainer::checkpoint_due(bool epoch_over) const {
  const SaveEvery& every = options_.save_every;
  switch (every.unit) {
    case SaveEvery::Unit::never:
      return false;
    case SaveEvery::Unit::steps:
      return position_.step % every.count == 0;
    case SaveEvery::Unit::minutes:
      return Clock::now() - last_save_ >= std::chrono::minutes(every.count);
    case SaveEvery::Unit::epochs:
      return epoch_over && position_.epoch % every.count == 0;
  }
  return false;
}

void Trainer::save() {
  last_save_ = Clock::now();
  saved_ = position_;
  if (folder_ == nullptr) return;
  CheckpointInfo info{position_, photos_.train.size(), to_toml(options_), nlohmann::json::object()};
  info.description["model"] = options_.model;
  info.description["classes"] = photos_.train.classes();
  info.description["preprocessing"] = data::to_json(photos_.preprocessing);
  info.description["arithmetic"] = arithmetic_of(accelerator_.device());
  try {
    save_checkpoint(checkpoint_path(folder_->checkpoints(), position_.step), trained(), info);
    prune_checkpoints(folder_->checkpoints(), options_.checkpoint_hist);
  } catch (const FileError& error) {
    if (position_.finished) throw;
    note(fmt::format("warning: no checkpoint at step {}: {}; training goes on", position_.step,
                     error.what()));
  }
}

void Trainer::finish() {
  position_.finished = true;
  if (options_.save_every.unit != SaveEvery::Unit::never) save();
  if (!is_main()) return;
  save_trained_model(
      folder_->path(), *model_,
      model_config(options_, *model_, photos_.train.classes(), photos_.preprocessing),
      photos_.preprocessing);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const std::string run = printable(folder_->path().native());
  nlohmann::ordered_json json{
      {"result", "finished"}, {"step", position_.step}, {"seconds", seconds}, {"run", run}};
  std::string best;
  if (position_.best_epoch > 0) {
    json["best_top1"] = position_.best_top1;
    best =
        fmt::format("; best top-1 {:.2f} % in epoch {}", position_.best_top1, position_.best_epoch);
  }
  progress_.reset();
  if (options_.json) {
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{}\n", fmt::format("done: {} steps in {}{}\n  {}/model.safetensors\n  "
                                 "{}/metrics.jsonl\nnext: collar eval {} {}",
                                 position_.step, clock_text(seconds), best, run, run, run,
                                 printable(options_.data)));
}

}  // namespace collar::apps
