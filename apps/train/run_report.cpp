// SPDX-License-Identifier: Apache-2.0
#include "apps/train/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "apps/accelerate/json_text.hpp"
#include "apps/accelerate/printable.hpp"
#include "apps/accelerate/progress.hpp"
#include "apps/counted.hpp"
#include "apps/saved_model.hpp"
#include "apps/train/resume.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

using Clock = std::chrono::steady_clock;

/// What has been added up since a line of the log, or an epoch, began.
struct Meter {
  std::int64_t images = 0;
  double wait_seconds = 0;
  Clock::time_point begin = Clock::now();

  void add(const data::Batch& batch) {
    images += batch.rows();
    wait_seconds += batch.wait_seconds;
  }
  double seconds() const {
    return std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
  }
};

ProgressOptions progress_options(const TrainOptions& options) {
  ProgressOptions progress;
  progress.bar = wants_bar(progress.descriptor, options.plain || options.json);
  progress.color = wants_color(progress.descriptor, options.plain || options.json);
  return progress;
}

class FirstRankReport final : public RunReport {
 public:
  explicit FirstRankReport(const TrainOptions& options)
      : options_(options), progress_(progress_options(options)) {}

  void note(const std::string& text) override { progress_.line(text); }

  void begin(const Lengths& lengths, const Position& position, std::uint64_t bytes) override {
    lengths_ = lengths;
    folder_.emplace(options_.output, start_of(options_),
                    [this](const std::string& warning) { note("warning: " + warning); });
    folder_->warn_of_shortage(bytes);
    folder_->write_config(to_toml(options_));
    folder_->truncate_after(position.step, position.epoch);
    const std::filesystem::path aside = set_aside_later(folder_->checkpoints(), position.step);
    if (!aside.empty())
      note(fmt::format("checkpoints of later steps were moved to {}", aside.string()));
  }

  void begin_epoch() override {
    interval_ = Meter();
    epoch_ = Meter();
    trained_seconds_ = epoch_.seconds();
  }

  void batch(const data::Batch& batch) override {
    interval_.add(batch);
    epoch_.add(batch);
  }

  void step(StepMetrics metrics, std::int64_t step_of_epoch, bool logged) override {
    trained_seconds_ = epoch_.seconds();
    const double seconds = interval_.seconds();
    metrics.images_per_second = speed(interval_, seconds);
    metrics.data_wait = std::min(1.0, interval_.wait_seconds / seconds);
    progress_.step({.epoch = metrics.epoch + 1,
                    .epochs = options_.epochs,
                    .step = step_of_epoch,
                    .steps = lengths_.steps_per_epoch,
                    .total_step = metrics.step,
                    .total_steps = lengths_.total_steps,
                    .loss = metrics.loss,
                    .lr = metrics.lr,
                    .images_per_second = metrics.images_per_second,
                    .data_wait = metrics.data_wait,
                    .logged = logged});
    if (!logged) return;
    folder_->log(metrics);
    if (options_.json) result(json_text(to_json(metrics)));
    interval_ = Meter();
  }

  void epoch(EpochMetrics metrics) override {
    metrics.seconds = trained_seconds_;
    metrics.images_per_second = speed(epoch_, trained_seconds_);
    folder_->log(metrics);
    result(options_.json
               ? json_text(to_json(metrics))
               : fmt::format("epoch {}/{}: train loss {:.4f}, valid loss {:.4f}, top-1 {:.2f} %, "
                             "top-5 {:.2f} %, {:.1f} img/s",
                             metrics.epoch + 1, options_.epochs, metrics.train_loss,
                             metrics.valid_loss.value_or(0), metrics.top1.value_or(0),
                             metrics.top5.value_or(0), metrics.images_per_second));
  }

  bool save(const Trained& trained, const CheckpointInfo& info) override {
    try {
      save_checkpoint(checkpoint_path(folder_->checkpoints(), info.position.step), trained, info);
      prune_checkpoints(folder_->checkpoints(), options_.checkpoint_hist);
    } catch (const FileError& error) {
      if (info.position.finished) throw;
      note(fmt::format("warning: no checkpoint at step {}: {}", info.position.step, error.what()));
      return false;
    }
    return true;
  }

  void save_model(const nn::ResNet& model, const nn::ModelConfig& config,
                  const data::Preprocessing& preprocessing) override {
    save_trained_model(folder_->path(), model, config, preprocessing);
  }

  void finished(const Position& position) override {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const std::string run = folder_->path().native();
    const bool judged = position.best_epoch > 0;
    if (options_.json) {
      nlohmann::ordered_json json{
          {"result", "finished"}, {"step", position.step}, {"seconds", seconds}, {"run", run}};
      if (judged) json["best_top1"] = position.best_top1;
      return result(json_text(json));
    }
    const std::string best = judged ? fmt::format("; best top-1 {:.2f} % in epoch {}",
                                                  position.best_top1, position.best_epoch)
                                    : "";
    const std::string shown = printable(run);
    result(fmt::format(
        "done: {} in {}{}\n  {}/model.safetensors (after the last step)\n  {}/metrics.jsonl\n"
        "next: collar eval {} {}",
        counted(position.step, "step"), clock_text(seconds), best, shown, shown, shown,
        printable(options_.data)));
  }

 private:
  double speed(const Meter& meter, double seconds) const {
    return static_cast<double>(meter.images * options_.ranks) / seconds;
  }

  // Results go to stdout, all else to stderr. A reader of them who has left is no reason to stop
  // training, so it is the end of the program that looks for errors.
  void result(const std::string& text) {
    progress_.clear();
    const std::string line = text + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  const TrainOptions& options_;
  Progress progress_;
  Lengths lengths_;
  std::optional<RunFolder> folder_;
  Meter interval_;
  Meter epoch_;
  double trained_seconds_ = 0;  // of this epoch, without its evaluation
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

std::unique_ptr<RunReport> make_run_report(const TrainOptions& options, bool first_rank) {
  if (first_rank) return std::make_unique<FirstRankReport>(options);
  return std::make_unique<RunReport>();
}

}  // namespace collar::apps
