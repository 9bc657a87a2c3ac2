// SPDX-License-Identifier: Apache-2.0
#include "apps/train/trainer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "apps/accelerate/printable.hpp"
#include "apps/build_info.hpp"
#include "apps/counted.hpp"
#include "comm/agreement.hpp"
#include "engine/io/sha256.hpp"
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

// What the last bits of results depend on besides the options.
nlohmann::json arithmetic_of(const CpuContext& context) {
  return {{"threads of a process", context.threads()},
          {"instructions", name_of(context.isa())},
          {"oneDNN", build_info().onednn}};
}

nlohmann::json arithmetic_of(const DeviceContext& device) {
  return std::visit([](const auto& context) { return arithmetic_of(context); }, device);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, Accelerator& accelerator, RunReport& report)
    : options_(options),
      accelerator_(accelerator),
      report_(report),
      photos_(open_photos(options)),
      lengths_(lengths_of(options, photos_.train.size())),
      train_loader_(photos_.train, loader_options(options, true)),
      valid_loader_(photos_.valid, loader_options(options, false)) {
  require_same_job();
  require_values_to_normalise(options, photos_.train.size());
  const auto classes = static_cast<std::int64_t>(photos_.train.classes().size());
  StartingPoint start =
      make_model(options, options.num_classes > 0 ? options.num_classes : classes);
  model_ = std::move(start.model);
  optimizer_ = make_optimizer(options, *model_);
  schedule_ = make_schedule(options, *optimizer_, lengths_);
  accelerator.prepare(*model_, *optimizer_, *schedule_, train_loader_, valid_loader_);
  loss_options_.label_smoothing = options.label_smoothing;
  describe();
  for (const std::string& text : start.notes) report_.note(text);
}

void Trainer::describe() const {
  std::int64_t trainable = 0;
  for (const nn::Parameter& parameter : model_->trainable_parameters())
    trainable += parameter.tensor.numel();
  report_.note(fmt::format(
      "{} of {} to train on, {} to validate{}", counted(photos_.train.size(), "photo"),
      counted(std::ssize(photos_.train.classes()), "class"), with_thousands(photos_.valid.size()),
      photos_.valid_was_split ? " (a fifth of each class: the folder has no valid/)" : ""));
  if (photos_.train.files().hidden > 0) {
    report_.note(counted(photos_.train.files().hidden, "hidden file") + " passed over");
  }
  report_.note(fmt::format("{}: {}, {} of them trained; {} {} on {} of {}", options_.model,
                           counted(model_->parameter_count(), "parameter"),
                           with_thousands(trainable), options_.opt, options_.precision,
                           counted(accelerator_.num_processes(), "process"),
                           counted(options_.virtual_ranks, "rank")));
  report_.note(fmt::format("{} of {} of {}", counted(options_.epochs, "epoch"),
                           counted(lengths_.steps_per_epoch, "step"),
                           counted(static_cast<std::int64_t>(options_.batch_size) *
                                       accelerator_.logical_ranks() * options_.grad_accum_steps,
                                   "image")));
  const std::string_view onednn = build_info().onednn;
  if (!onednn.starts_with("on")) report_.note(fmt::format("slow: oneDNN is {}", onednn));
}

// Ranks that somebody starts one by one can be given different options.
void Trainer::require_same_job() const {
  std::vector<comm::Claim> claims;
  for (const OptionSpec& option : train_option_table()) {
    const bool shared = option.effect == Effect::results || option.key == "max-steps" ||
                        option.key == "virtual-ranks";
    if (shared) claims.push_back({"--" + option.key, option.get(options_)});
  }
  const nlohmann::json arithmetic = arithmetic_of(accelerator_.device());
  for (const auto& [name, value] : arithmetic.items()) claims.push_back({name, value.dump()});
  claims.push_back({"the classes", fmt::format("{}", fmt::join(photos_.train.classes(), ", "))});
  for (const auto& [subject, photos] : {std::pair("the photos to train on", &photos_.train),
                                        {"the photos to validate", &photos_.valid}}) {
    Sha256 names;  // within the folder, which ranks may know by different paths
    for (std::int64_t i = 0; i < photos->size(); ++i) {
      const fs::path name = photos->path(i).lexically_relative(options_.data);
      names.update(name.native()).update("\n");
    }
    claims.push_back(
        {subject, fmt::format("{} with the digest {:.8}", photos->size(), to_hex(names.finish()))});
  }
  comm::require_agreement(accelerator_.communicator(), "options", claims);
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
    report_.note(
        fmt::format("warning: {}: {} before, {} now, so results may differ in their last bits",
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
  report_.note(fmt::format("going on from {} (step {}, epoch {})", checkpoint.path().native(),
                           position_.step, position_.epoch + 1));
  warn_of_other_arithmetic(info);
}

// Of the model, and of one checkpoint if there will be any.
std::uint64_t Trainer::bytes_to_save() const {
  std::uint64_t model = 0;
  for (const nn::Parameter& parameter : model_->state_dict()) model += parameter.tensor.bytes();
  if (options_.save_every.unit == SaveEvery::Unit::never) return model;
  std::uint64_t trained = 0;
  for (const nn::Parameter& parameter : model_->trainable_parameters())
    trained += parameter.tensor.bytes();
  return 2 * model + trained * static_cast<std::uint64_t>(optimizer_states(options_));
}

ExitCode Trainer::run() {
  report_.begin(lengths_, position_, bytes_to_save());
  model_->train();
  while (position_.step < lengths_.total_steps || epoch_is_over()) {
    const ExitCode code = train_epoch();
    if (code != ExitCode::done) return code;
  }
  finish();
  return ExitCode::done;
}

ExitCode Trainer::train_epoch() {
  report_.begin_epoch();
  for (const data::Batch& batch : train_loader_) {
    Tensor loss = cross_entropy((*model_)(batch.images), batch.labels, loss_options_);
    accelerator_.backward(loss);
    step_loss_.add(loss.item());
    report_.batch(batch);
    if (!accelerator_.sync_gradients()) continue;
    const StopRequest request = end_step(batch);
    if (request != StopRequest::none) return stop(request);
    if (position_.step >= lengths_.total_steps) break;
    if (!epoch_is_over() && checkpoint_due(false)) save();
  }
  if (epoch_is_over()) end_epoch();
  return ExitCode::done;
}

StopRequest Trainer::end_step(const data::Batch& batch) {
  const bool logged = is_logged(batch);
  std::optional<double> norm;
  if (options_.clip_grad > 0) {
    norm = accelerator_.clip_grad_norm(options_.clip_grad);
  } else if (logged) {
    norm = accelerator_.grad_norm();
  }
  const double rate = schedule_->learning_rates().front();

  // One small reduction a step: the loss, and whether some rank has been asked to stop.
  const StopRequest own = stop_signal_.request();
  std::array<double, 3> shared{step_loss_.value() / accelerator_.num_processes(),
                               own == StopRequest::interrupt ? 1.0 : 0.0,
                               own == StopRequest::save_and_exit ? 1.0 : 0.0};
  accelerator_.communicator().all_reduce(std::span(shared));
  const double loss = shared[0];
  if (!std::isfinite(loss)) fail_on_loss(batch, loss);

  optimizer_->step();
  schedule_->step();
  optimizer_->zero_grad();

  ++position_.step;
  position_.batch = batch.index + 1;
  position_.loss_sum += loss;
  step_loss_ = {};
  report_.step({.step = position_.step,
                .epoch = static_cast<int>(position_.epoch),
                .loss = loss,
                .lr = rate,
                .grad_norm = norm},
               steps_of_epoch(), logged);
  if (shared[2] > 0) return StopRequest::save_and_exit;
  return shared[1] > 0 ? StopRequest::interrupt : StopRequest::none;
}

// The first step, every log_interval-th, and the last one of each epoch.
bool Trainer::is_logged(const data::Batch& batch) const {
  const std::int64_t step = position_.step + 1;
  return step == 1 || step % options_.log_interval == 0 ||
         batch.index + 1 == lengths_.batches_per_epoch;
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
                  "--clip-grad 1 usually helps; --resume auto --force goes on from the last "
                  "checkpoint with such a change",
                  std::isnan(loss) ? "nan" : "infinite", position_.step + 1, batch.epoch + 1,
                  accelerator_.process_index(), photos));
}

void Trainer::end_epoch() {
  const Evaluation valid = evaluate(accelerator_, *model_, valid_loader_);
  const EpochMetrics metrics{
      .epoch = static_cast<int>(position_.epoch),
      .step = position_.step,
      .train_loss = position_.loss_sum / static_cast<double>(steps_of_epoch()),
      .valid_loss = valid.loss,
      .top1 = valid.accuracy.top1(),
      .top5 = valid.accuracy.top5(),
      .lr = schedule_->learning_rates().front()};
  ++position_.epoch;
  position_.batch = 0;
  position_.loss_sum = 0;
  if (valid.accuracy.top1() > position_.best_top1) {
    position_.best_top1 = valid.accuracy.top1();
    position_.best_epoch = position_.epoch;
  }
  report_.epoch(metrics);
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

// True if this rank knows that the state is safe: the one that writes.
bool Trainer::save() {
  last_save_ = Clock::now();
  CheckpointInfo info{position_, photos_.train.size(), to_toml(options_), nlohmann::json::object()};
  info.description["model"] = options_.model;
  info.description["classes"] = photos_.train.classes();
  info.description["preprocessing"] = data::to_json(photos_.preprocessing);
  info.description["arithmetic"] = arithmetic_of(accelerator_.device());
  if (!report_.save(trained(), info)) return false;
  saved_ = position_;
  return true;
}

ExitCode Trainer::stop(StopRequest request) {
  const bool saved = accelerator_.any_process(position_ == saved_ || save());
  report_.note(saved ? fmt::format("stopped at step {}, and saved; the same command with --resume "
                                   "auto goes on",
                                   position_.step)
                     : fmt::format("stopped at step {}, and not saved", position_.step));
  if (request == StopRequest::interrupt) return ExitCode::interrupted;
  return saved ? ExitCode::stopped_and_saved : ExitCode::terminated;
}

void Trainer::finish() {
  // The model first: a checkpoint that says "finished" promises that it is there.
  report_.save_model(
      *model_, model_config(options_, *model_, photos_.train.classes(), photos_.preprocessing),
      photos_.preprocessing);
  position_.finished = true;
  if (options_.save_every.unit != SaveEvery::Unit::never) save();
  report_.finished(position_);
}

}  // namespace collar::apps
